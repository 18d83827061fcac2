BEGIN TRANSACTION;
CREATE TABLE agents (
    uuid            TEXT PRIMARY KEY,
    name            TEXT,
    parent_uuid     TEXT REFERENCES agents (uuid),       
    supervisor_uuid TEXT REFERENCES agents (uuid),       
    fork_message_id BIGINT NOT NULL CHECK (fork_message_id >= 0),   
    status          TEXT NOT NULL CHECK (status IN (
                        'running',                       
                        'stopped',                       
                        'terminating',                   
                        'dead')),                        
    turn            BIGINT NOT NULL DEFAULT 0,           
    restart         TEXT NOT NULL DEFAULT 'transient' CHECK (restart IN ('permanent', 'transient', 'temporary')),
    exit_reason     TEXT,
    created_at      BIGINT NOT NULL,
    ended_at        BIGINT,
    active_at       BIGINT NOT NULL DEFAULT 0,           
    epoch           BIGINT NOT NULL DEFAULT 0,           
    on_orphan       TEXT NOT NULL DEFAULT 'reparent' CHECK (on_orphan IN (   
                        'reparent',                      
                        'cascade',                       
                        'stop',                          
                        'continue')),                    
    strategy        TEXT NOT NULL DEFAULT 'one_for_one' CHECK (strategy IN ('one_for_one', 'one_for_all', 'rest_for_one')),
    intensity       BIGINT NOT NULL DEFAULT 3 CHECK (intensity >= 0),        
    period          BIGINT NOT NULL DEFAULT 600000 CHECK (period > 0),       
    deadline        BIGINT,                              
    exit_cause      TEXT CHECK (exit_cause IN ('killed', 'terminated', 'exited', 'crashed', 'gave up', 'orphaned', 'damaged')),
    exit_sender     TEXT,                                
    mailed          BIGINT NOT NULL DEFAULT 0,           
    unread          BIGINT NOT NULL DEFAULT 0,           
    shard           BIGINT NOT NULL DEFAULT 0,           
                                                         
    changed         BIGINT NOT NULL DEFAULT 0,           
    interrupted     BIGINT NOT NULL DEFAULT 0,           
    born            BIGINT NOT NULL DEFAULT 0,           
    budget          TEXT,                                
    held_at         BIGINT NOT NULL DEFAULT 0,           
    held_tokens     BIGINT NOT NULL DEFAULT 0,           
    held_usd        BIGINT NOT NULL DEFAULT 0,           
    held_risk_tokens BIGINT NOT NULL DEFAULT 0,          
    held_risk_usd   BIGINT NOT NULL DEFAULT 0,
    held_limit      BIGINT,                              
    held_host       TEXT,                                
    spent_tokens    BIGINT NOT NULL DEFAULT 0,           
    spent_usd       BIGINT NOT NULL DEFAULT 0,
    imported_at     BIGINT,                              
                                                         
    pruned_at       BIGINT,                              
    pruned_hash     BYTEA,                               
    timed           BIGINT NOT NULL DEFAULT 0,           
    stuck           BIGINT NOT NULL DEFAULT 0,           
    branch          TEXT,                                
    labels          TEXT NOT NULL DEFAULT '',            
    awake           BIGINT NOT NULL DEFAULT 0 CHECK (awake IN (0, 1)),   
                                                         
    CHECK ((status = 'dead') = (ended_at IS NOT NULL)),
    CHECK ((parent_uuid IS NULL) = (supervisor_uuid IS NULL))
);
INSERT INTO "agents" VALUES('r_a4j3ikTKulOTbBuA5-sg',NULL,NULL,NULL,0,'running',0,'transient',NULL,1795933035869,NULL,0,1,'reparent','one_for_one',3,600000,NULL,NULL,NULL,0,0,0,0,0,0,NULL,0,0,0,0,0,NULL,NULL,0,0,NULL,NULL,NULL,0,0,NULL,'',0);
INSERT INTO "agents" VALUES('d6G4Dl5eQUCRxr8AhIjlgg','lead','r_a4j3ikTKulOTbBuA5-sg','r_a4j3ikTKulOTbBuA5-sg',0,'running',0,'transient',NULL,1795933035880,NULL,0,1,'reparent','one_for_one',3,600000,NULL,NULL,NULL,0,0,37,0,0,1,NULL,0,0,0,0,0,NULL,NULL,60,0,NULL,NULL,NULL,1,0,'d6G4Dl5eQUCRxr8AhIjlgg','{"customer":"ann"}',1);
INSERT INTO "agents" VALUES('zHgzTQ7XSzSf2NCVdkLjTg','buyer','d6G4Dl5eQUCRxr8AhIjlgg','d6G4Dl5eQUCRxr8AhIjlgg',14,'running',0,'transient',NULL,1795933035980,NULL,0,1,'reparent','one_for_one',3,600000,NULL,NULL,NULL,1,1,37,3,0,15,NULL,0,0,0,0,0,NULL,NULL,15,0,NULL,NULL,NULL,0,0,'d6G4Dl5eQUCRxr8AhIjlgg','{"customer":"ann"}',1);
INSERT INTO "agents" VALUES('nQUMnrD_TPSH5O_Nls0HjA','clerk','zHgzTQ7XSzSf2NCVdkLjTg','zHgzTQ7XSzSf2NCVdkLjTg',17,'dead',0,'transient','sold out',1795933035985,1795933035987,0,2,'reparent','one_for_one',3,600000,NULL,'killed',NULL,0,0,37,4,0,18,NULL,0,0,0,0,0,NULL,NULL,0,0,NULL,NULL,NULL,0,0,'d6G4Dl5eQUCRxr8AhIjlgg','{"customer":"ann"}',0);
INSERT INTO "agents" VALUES('Kd227uqbQiy8GBG9NiAxhw','seller','d6G4Dl5eQUCRxr8AhIjlgg','d6G4Dl5eQUCRxr8AhIjlgg',4,'stopped',0,'transient','STOP by a person',1795933035992,NULL,0,1,'reparent','one_for_one',3,600000,NULL,NULL,NULL,1,1,37,5,0,16,NULL,0,0,0,0,0,NULL,NULL,0,0,NULL,NULL,NULL,0,0,'d6G4Dl5eQUCRxr8AhIjlgg','{"customer":"ann"}',0);
CREATE TABLE blobs (
    sha256 TEXT NOT NULL PRIMARY KEY,                    
    media  TEXT NOT NULL,                                
    bytes  BYTEA NOT NULL
);
INSERT INTO "blobs" VALUES('c369d74f4fd90e3fc42b64f27f9a3b8167bb9f1d94281037112056fd00a3d8b4','image/png',X'89504E470D0A1A0A0000000D4948445200000280000001E00802000000');
CREATE TABLE budgets (
    owner      TEXT PRIMARY KEY REFERENCES agents (uuid),
    above      TEXT,                                     
    strict     BIGINT NOT NULL DEFAULT 0 CHECK (strict IN (0, 1)),   
    paused     BIGINT NOT NULL DEFAULT 0,                
    created_at BIGINT NOT NULL                           
);
INSERT INTO "budgets" VALUES('r_a4j3ikTKulOTbBuA5-sg',NULL,0,0,1795933035869);
CREATE TABLE calls (
    key   TEXT PRIMARY KEY,                              
    asked TEXT NOT NULL,                                 
    gave  TEXT NOT NULL,                                 
    at    BIGINT NOT NULL                                
);
CREATE TABLE documents (
    path       TEXT NOT NULL,
    version    BIGINT NOT NULL CHECK (version > 0),      
    author     TEXT REFERENCES agents (uuid),            
    body       TEXT,                                     
    created_at BIGINT NOT NULL,
    PRIMARY KEY (path, version)
);
INSERT INTO "documents" VALUES('plans/tea.md',1,'d6G4Dl5eQUCRxr8AhIjlgg','# Tea
',1795933036030);
INSERT INTO "documents" VALUES('plans/tea.md',2,'d6G4Dl5eQUCRxr8AhIjlgg','# Tea

12 kg
',1795933036031);
CREATE TABLE group_names (
    name TEXT PRIMARY KEY
);
CREATE TABLE groups (
    name       TEXT NOT NULL REFERENCES group_names (name),
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    joined_at  BIGINT NOT NULL,
    PRIMARY KEY (name, agent_uuid)
);
CREATE TABLE guest_entries (
    log        TEXT NOT NULL,
    id         BIGINT NOT NULL,                          
    part       TEXT NOT NULL,                            
    about      TEXT NOT NULL,                            
    key        TEXT NOT NULL,                            
    tag        TEXT,                                     
    data       TEXT,                                     
    body       BYTEA,                                    
    PRIMARY KEY (log, id)
);
CREATE TABLE guest_logs (
    id         TEXT PRIMARY KEY,                         
    guest      TEXT NOT NULL,                            
    scope      TEXT NOT NULL,                            
    name       TEXT,                                     
    parent     TEXT REFERENCES guest_logs (id),          
    upto       BIGINT NOT NULL CHECK (upto >= 0),        
    head       BIGINT NOT NULL CHECK (head >= upto),     
    data       TEXT NOT NULL,                            
    changed_at BIGINT NOT NULL                           
);
CREATE TABLE hosts (
    id          TEXT PRIMARY KEY,             
    hostname    TEXT NOT NULL,
    pid         BIGINT NOT NULL,
    epoch       BIGINT NOT NULL UNIQUE,       
    started_at  BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,              
    ended_at    BIGINT,                       
    batch       BIGINT NOT NULL DEFAULT 0,    
    name        TEXT,                         
    lease       BIGINT NOT NULL DEFAULT 0,    
    beat        BIGINT NOT NULL DEFAULT 0,    
    agents      BIGINT NOT NULL DEFAULT 0,    
    draining    BIGINT NOT NULL DEFAULT 0 CHECK (draining IN (0, 1)),  
    working     BIGINT NOT NULL DEFAULT 0,    
    waits       TEXT NOT NULL DEFAULT '',     
    signs       TEXT NOT NULL DEFAULT ''      
);
INSERT INTO "hosts" VALUES('3DN8z2tIQp-WBnDH7UKQ-Q','vm',4532,1,1795933035863,0,1795933036049,30,NULL,0,0,0,0,0,'','');
CREATE TABLE label_values (
    labels TEXT NOT NULL,                                
    key    TEXT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (labels, key)
);
INSERT INTO "label_values" VALUES('9667892346042a63','customer','ann');
CREATE TABLE limits (
    budget  TEXT NOT NULL REFERENCES budgets (owner),
    unit    TEXT NOT NULL CHECK (unit IN (
                'tokens',
                'usd',                                   
                'agents',                                
                'agents_ever',                           
                'ms',                                    
                'requests')),                            
    granted BIGINT NOT NULL CHECK (granted BETWEEN 0 AND 1000000000000000),
    base    BIGINT NOT NULL DEFAULT 0,                   
    used    BIGINT NOT NULL DEFAULT 0,                   
    risk    BIGINT NOT NULL DEFAULT 0,                   
    notified BIGINT NOT NULL DEFAULT 0,                   
    PRIMARY KEY (budget, unit)
);
CREATE TABLE listeners (
    id      TEXT PRIMARY KEY,                            
    until   BIGINT NOT NULL,                             
    replies BIGINT NOT NULL DEFAULT 1 CHECK (replies IN (0, 1))   
);
CREATE TABLE mail (
    recipient  TEXT NOT NULL REFERENCES agents (uuid),
    id         BIGINT NOT NULL CHECK (id > 0),
    sender     TEXT,                                     
                                                         
    kind       TEXT NOT NULL CHECK (kind IN (
                   'mail',                               
                   'exit',                               
                   'notice',                             
                   'prompt')),                           
    body       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    read_at    BIGINT,
    data       TEXT,                                     
    PRIMARY KEY (recipient, id)
);
INSERT INTO "mail" VALUES('zHgzTQ7XSzSf2NCVdkLjTg',1,'nQUMnrD_TPSH5O_Nls0HjA','exit','killed: sold out',1795933035987,NULL,NULL);
INSERT INTO "mail" VALUES('Kd227uqbQiy8GBG9NiAxhw',1,'d6G4Dl5eQUCRxr8AhIjlgg','mail','Sell 12 kg.',1795933036000,NULL,NULL);
CREATE TABLE merges (
    into_uuid  TEXT NOT NULL REFERENCES agents (uuid),
    from_uuid  TEXT NOT NULL REFERENCES agents (uuid),
    from_head  BIGINT NOT NULL,                          
    message    BIGINT NOT NULL,                          
    created_at BIGINT NOT NULL,
    PRIMARY KEY (into_uuid, from_uuid, from_head)
);
INSERT INTO "merges" VALUES('d6G4Dl5eQUCRxr8AhIjlgg','zHgzTQ7XSzSf2NCVdkLjTg',18,17,1795933036025);
CREATE TABLE messages (
    agent_uuid TEXT NOT NULL,                            
    id         BIGINT NOT NULL CHECK (id > 0),
    kind       TEXT NOT NULL,
    content    TEXT NOT NULL,
    data       TEXT,                                     
    created_at BIGINT NOT NULL,
    hash       BYTEA NOT NULL,                           
                                                         
    PRIMARY KEY (agent_uuid, id)
);
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',1,'fork','','{"parent":"r_a4j3ikTKulOTbBuA5-sg"}',1795933035880,X'81B9D4183F31C8885350F7060A53EC3F22A9E666A336EAC5FF9B9E0630C296EB');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',2,'configure','','{"system":"Be brief."}',1795933035880,X'1D517090DD7FF5A07F587EDB69D2A5BF6EE097697A731C030A35580572CEDD08');
INSERT INTO "messages" VALUES('r_a4j3ikTKulOTbBuA5-sg',1,'fork','','{"child":"d6G4Dl5eQUCRxr8AhIjlgg","name":"lead"}',1795933035880,X'AF29872DB80D29CD6A5796D6BA40219DAB8CF391F84F7EB6E1290550009C7BD9');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',3,'user','We sell tea — 茶
	two lines, a \ and a "quote".',NULL,1795933035888,X'0A9863FC666645F35B8A362C1C4E56B6A6470D9F913E015C45F9694D84079E70');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',4,'assistant','Yes.','{"model":"scripted:","stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}',1795933035942,X'6337138225574D6B0D86DB4B358121AC034819D2B82B06D78546B65F8999BA24');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',5,'user','Look.','{"attached":[{"sha256":"c369d74f4fd90e3fc42b64f27f9a3b8167bb9f1d94281037112056fd00a3d8b4","media":"image/png","size":29,"name":"","pixels":640}]}',1795933035945,X'D18D769789EA8973F272898608AF9FEAF8BD3ECB0420BCEBC9D7C1355831DCE7');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',6,'assistant','Yes.','{"model":"scripted:","stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}',1795933035953,X'601461C0827BD0A24C050FCBE8B1A583DC52801B9FABC8D07B77B89757619823');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',7,'user','Weigh.',NULL,1795933035959,X'06768DF43F801787CF17690CD6371789C010FEC68F68CE5105110283142AE88F');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',8,'assistant','','{"model":"scripted:","stop_reason":"tool_use","tool_calls":[{"id":"","name":"weigh","input":{"tea":"Assam"}}]}',1795933035961,X'A25D3B3B05834CA3D15584034F6F533EDB01F0FC10EF0BDBC67545EBF2DE4CF9');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',9,'tool_call','weigh','{"tool_use_id":"call_8_0","name":"weigh"}',1795933035963,X'74FB200E9C7B44EA07131AB60E2C66B0DB1A570C3B8144671838B2731052860C');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',10,'tool_result','12 kg','{"tool_use_id":"call_8_0","name":"weigh"}',1795933035970,X'628D556ADEEC19F34D1A1023124C39525E43AADD4484752224D9FECE551FED1C');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',11,'assistant','It weighs 12 kg.','{"model":"scripted:","stop_reason":"end_turn"}',1795933035973,X'D6139914E62D2278819D1DF61C127BD0BCE8A3C45F30BB2ED76FA06BF2ADEFB3');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',12,'user','Wrong.',NULL,1795933035975,X'F512C43154D9AA9E80CDC709FFF8B1956FA0AC036A99060921919932B6D87710');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',13,'assistant','Yes.','{"model":"scripted:","stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}',1795933035978,X'0D45F268AC190C8CE98794CA7BA4C9A4128E5BBFD37F632E4EAE7D106629B405');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',14,'rewind','','{"before":12}',1795933035979,X'011DA30D56ED62B321E04FD41C9537FEA45BC88B6A89A46C8B96D6176A480395');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',15,'fork','','{"child":"zHgzTQ7XSzSf2NCVdkLjTg","name":"buyer"}',1795933035980,X'BD4A1AD3E094FED371DE72BE28ADCBB24CAE53B35412CB9205FCD376E1928A3C');
INSERT INTO "messages" VALUES('zHgzTQ7XSzSf2NCVdkLjTg',15,'fork','','{"parent":"d6G4Dl5eQUCRxr8AhIjlgg"}',1795933035980,X'1EB10A7625A42BE5F0B504A685B0AD9D025DBF567430856047D2C897B6B54161');
INSERT INTO "messages" VALUES('zHgzTQ7XSzSf2NCVdkLjTg',16,'user','You buy.',NULL,1795933035980,X'426975DCFCE7D3B11BEF963230966E43F1AC132F75A122A38B0BECF8E0575C4C');
INSERT INTO "messages" VALUES('zHgzTQ7XSzSf2NCVdkLjTg',17,'assistant','Yes.','{"model":"scripted:","stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}',1795933035983,X'91521815C3822A354C9AC3CB7E817338786249042B05904EA7FD6356C5ACD773');
INSERT INTO "messages" VALUES('nQUMnrD_TPSH5O_Nls0HjA',18,'fork','','{"parent":"zHgzTQ7XSzSf2NCVdkLjTg"}',1795933035985,X'7A6450EBA425740136A68B1B50CA5126CFBC268B83AECDB1B36505573F3F2DE1');
INSERT INTO "messages" VALUES('zHgzTQ7XSzSf2NCVdkLjTg',18,'fork','','{"child":"nQUMnrD_TPSH5O_Nls0HjA","name":"clerk"}',1795933035985,X'DE059B60BEF5D5F64882E010CA24E3B23C56916DDD35449625E892902325A336');
INSERT INTO "messages" VALUES('Kd227uqbQiy8GBG9NiAxhw',5,'fork','','{"parent":"d6G4Dl5eQUCRxr8AhIjlgg","at":4}',1795933035992,X'8733BF01619250F27A60A13C42E0FF9F8978FCF241076C573E232B3122D11917');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',16,'fork','','{"child":"Kd227uqbQiy8GBG9NiAxhw","name":"seller","at":4}',1795933035992,X'C13046569C590D1D99A1DE26058948F939C532AA15777FA94FD54C1D94CD1203');
INSERT INTO "messages" VALUES('Kd227uqbQiy8GBG9NiAxhw',6,'configure','','{"temperature":0.5,"max_steps":7}',1795933036003,X'5861B332AEF2163CB8CE576EEF7281170EB8EBE71E6D483571BF318489EA5018');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',17,'merge','Yes.','{"from":"zHgzTQ7XSzSf2NCVdkLjTg","name":"buyer","head":18,"since":14,"how":"result"}',1795933036025,X'8E112A3099BDC4C5EFC62746B127D36ADA2AE38DCA9DBB1BE5634A308F644430');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',18,'summary','Tea was sold.','{"keep_from":11,"prompt":0,"saw":17,"how":"given","by":"person","before":55,"after":12,"tokens_per_byte":0.3333333333333333}',1795933036027,X'C9FC72CDB6014E00D4AB331F664C0336A57CE7FC077EECF2B33CBAA062F93E6F');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',19,'user','And now?',NULL,1795933036028,X'ECBBD5A19578CA0BAA00DCDBF7D2E65890B7046551558402E5712F89BC234334');
INSERT INTO "messages" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',20,'assistant','Yes.','{"model":"scripted:","stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}',1795933036029,X'344218AE6ACDDC04D55AAAE5E857407E064B7A6AD4EA15FFB3778B5194412ADA');
CREATE TABLE monitors (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    watcher    TEXT NOT NULL REFERENCES agents (uuid),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (agent_uuid, watcher)
);
CREATE TABLE pauses (
    agent_uuid TEXT PRIMARY KEY REFERENCES agents (uuid),
    budget     TEXT NOT NULL REFERENCES budgets (owner), 
    unit       TEXT NOT NULL,
    number     BIGINT NOT NULL,                          
    turn       BIGINT NOT NULL,
    at         BIGINT NOT NULL,                          
    need       TEXT NOT NULL,                            
    since      BIGINT NOT NULL,
    due_at     BIGINT                                    
);
CREATE TABLE pieces (
    host       TEXT NOT NULL REFERENCES hosts (id),      
    id         BIGINT NOT NULL CHECK (id > 0),           
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    reply      BIGINT NOT NULL,                          
    at         BIGINT NOT NULL,                          
    body       TEXT NOT NULL,                            
    PRIMARY KEY (host, id)
);
CREATE TABLE portions (
    budget   TEXT NOT NULL REFERENCES budgets (owner),
    unit     TEXT NOT NULL,
    host     TEXT NOT NULL REFERENCES hosts (id),
    allotted BIGINT NOT NULL,                            
    held     BIGINT NOT NULL CHECK (held >= 0),
    spent    BIGINT NOT NULL,
    risk     BIGINT NOT NULL DEFAULT 0,                  
                                                         
    wanted   BIGINT NOT NULL DEFAULT 0 CHECK (wanted IN (0, 1)),     
    PRIMARY KEY (budget, unit, host)
);
CREATE TABLE requests (
    agent_uuid  TEXT NOT NULL REFERENCES agents (uuid),
    id          BIGINT NOT NULL CHECK (id > 0),          
    kind        TEXT NOT NULL,
    body        TEXT NOT NULL,                           
    mailed      BIGINT NOT NULL,                         
    created_at  BIGINT NOT NULL,
    answer      TEXT,                                    
    answered_at BIGINT,
    PRIMARY KEY (agent_uuid, id),
    CHECK ((answer IS NULL) = (answered_at IS NULL))
);
CREATE TABLE restarts (
    agent_uuid      TEXT NOT NULL REFERENCES agents (uuid),
    id              BIGINT NOT NULL CHECK (id > 0),      
    supervisor_uuid TEXT NOT NULL REFERENCES agents (uuid),
    turn            BIGINT NOT NULL,                     
    reason          TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (agent_uuid, id)
);
CREATE TABLE rules (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    id         BIGINT NOT NULL CHECK (id > 0),           
    decision   TEXT NOT NULL CHECK (decision IN ('allow', 'ask', 'deny')),
    tool       TEXT NOT NULL,                            
    pattern    TEXT NOT NULL,                            
    scope      TEXT NOT NULL CHECK (scope IN (
                   'below',                              
                   'self')),                             
    created_at BIGINT NOT NULL,
    removed_at BIGINT,
    PRIMARY KEY (agent_uuid, id)
);
INSERT INTO "rules" VALUES('zHgzTQ7XSzSf2NCVdkLjTg',1,'deny','bash','git push *','below',1795933035984,NULL);
CREATE TABLE schema_version (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
);
INSERT INTO "schema_version" VALUES(1,36);
CREATE TABLE shards (
    id    BIGINT PRIMARY KEY,
    host  TEXT REFERENCES hosts (id),         
    epoch BIGINT NOT NULL DEFAULT 0           
);
INSERT INTO "shards" VALUES(0,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(1,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(2,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(3,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(4,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(5,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(6,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(7,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(8,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(9,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(10,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(11,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(12,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(13,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(14,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(15,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(16,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(17,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(18,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(19,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(20,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(21,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(22,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(23,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(24,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(25,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(26,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(27,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(28,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(29,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(30,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(31,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(32,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(33,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(34,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(35,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(36,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(37,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(38,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(39,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(40,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(41,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(42,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(43,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(44,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(45,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(46,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(47,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(48,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(49,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(50,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(51,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(52,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(53,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(54,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(55,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(56,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(57,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(58,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(59,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(60,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(61,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(62,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
INSERT INTO "shards" VALUES(63,'3DN8z2tIQp-WBnDH7UKQ-Q',1);
CREATE TABLE signals (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    id         BIGINT NOT NULL CHECK (id > 0),           
    signal     TEXT NOT NULL CHECK (signal IN ('INT', 'STOP', 'CONT', 'TERM', 'KILL')),
    spread     BIGINT NOT NULL DEFAULT 0 CHECK (spread IN (0, 1)),   
    turn       BIGINT NOT NULL DEFAULT 0,                
    sender     TEXT REFERENCES agents (uuid),            
    reason     TEXT NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    PRIMARY KEY (agent_uuid, id)
);
INSERT INTO "signals" VALUES('nQUMnrD_TPSH5O_Nls0HjA',1,'KILL',0,0,NULL,'sold out',1795933035987);
INSERT INTO "signals" VALUES('Kd227uqbQiy8GBG9NiAxhw',1,'STOP',0,0,NULL,'',1795933036032);
CREATE TABLE slots (
    budget  TEXT NOT NULL REFERENCES budgets (owner),
    id      BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (budget, id)
);
CREATE TABLE spendings (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    id         BIGINT NOT NULL,                          
    labels     TEXT NOT NULL,                            
    created_at BIGINT NOT NULL,
    tokens     BIGINT NOT NULL CHECK (tokens >= 0),
    usd        BIGINT NOT NULL CHECK (usd >= 0),         
    PRIMARY KEY (agent_uuid, id)
);
INSERT INTO "spendings" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',4,'9667892346042a63',1795933035942,15,0);
INSERT INTO "spendings" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',6,'9667892346042a63',1795933035953,15,0);
INSERT INTO "spendings" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',13,'9667892346042a63',1795933035978,15,0);
INSERT INTO "spendings" VALUES('zHgzTQ7XSzSf2NCVdkLjTg',17,'9667892346042a63',1795933035983,15,0);
INSERT INTO "spendings" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',20,'9667892346042a63',1795933036029,15,0);
CREATE TABLE timers (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),   
    id         BIGINT NOT NULL CHECK (id > 0),           
    due_at     BIGINT NOT NULL,                          
    schedule   TEXT,                                     
    zone       TEXT NOT NULL,                            
    fires_as   TEXT NOT NULL CHECK (fires_as IN ('mail', 'notice', 'prompt')),   
    sender     TEXT REFERENCES agents (uuid),            
    body       TEXT NOT NULL,
    missed     BIGINT NOT NULL DEFAULT 0,                
    since      BIGINT,                                   
    latest     BIGINT NOT NULL DEFAULT 0,                
    notified   BIGINT NOT NULL DEFAULT 0 CHECK (notified IN (0, 1)),   
    created_at BIGINT NOT NULL,
    PRIMARY KEY (agent_uuid, id)
);
INSERT INTO "timers" VALUES('d6G4Dl5eQUCRxr8AhIjlgg',1,1795936636031,NULL,'Etc/UTC','notice','d6G4Dl5eQUCRxr8AhIjlgg','Buy.',0,NULL,0,0,1795933036031);
CREATE TABLE tree (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
);
INSERT INTO "tree" VALUES(1,5);
CREATE TABLE tree_merges (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),   
    base       TEXT NOT NULL,
    layer      BIGINT NOT NULL,                          
    child      TEXT NOT NULL REFERENCES agents (uuid),
    upto       BIGINT NOT NULL,                          
    created_at BIGINT NOT NULL,
    PRIMARY KEY (agent_uuid, base, layer)
);
CREATE TABLE tree_writes (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    base       TEXT NOT NULL,
    layer      BIGINT NOT NULL CHECK (layer >= -1),      
    position   BIGINT NOT NULL,
    PRIMARY KEY (agent_uuid, base, layer, position)
);
CREATE TABLE trees (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    base       TEXT NOT NULL,                            
    machine    TEXT NOT NULL,                            
    forked_as  TEXT NOT NULL CHECK (forked_as IN (
                   'overlay',                            
                   'worktree')),                         
    parent     TEXT REFERENCES agents (uuid),            
    below      BIGINT NOT NULL CHECK (below >= 0),       
    upper      BIGINT NOT NULL CHECK (upper >= 0),       
    since      BIGINT NOT NULL CHECK (since >= 0),       
    created_at BIGINT NOT NULL,
    applied_at BIGINT,                                   
    PRIMARY KEY (agent_uuid, base)
);
CREATE UNIQUE INDEX hosts_name ON hosts (name) WHERE name IS NOT NULL AND ended_at IS NULL;
CREATE UNIQUE INDEX agents_root ON agents ((1)) WHERE parent_uuid IS NULL;
CREATE UNIQUE INDEX agents_name ON agents (name) WHERE name IS NOT NULL AND status <> 'dead';
CREATE INDEX agents_beginning ON agents (substr(uuid, 1, 4));
CREATE INDEX agents_supervisor ON agents (supervisor_uuid);
CREATE INDEX agents_adopted ON agents (parent_uuid) WHERE supervisor_uuid <> parent_uuid;
CREATE INDEX agents_shard ON agents (shard) WHERE status <> 'dead';
CREATE INDEX agents_awake ON agents (shard) WHERE awake = 1;
CREATE INDEX agents_seen ON agents (active_at) WHERE active_at > 0;
CREATE INDEX agents_branch ON agents (branch) WHERE status <> 'dead';
CREATE INDEX agents_changed ON agents (changed) WHERE changed > 0;
CREATE INDEX agents_paused ON agents (status) WHERE status = 'stopped' OR status = 'terminating';
CREATE INDEX agents_dead_name ON agents (name, ended_at) WHERE status = 'dead' AND name IS NOT NULL;
CREATE INDEX agents_children ON agents (supervisor_uuid, created_at, born) WHERE status <> 'dead';
CREATE INDEX agents_newest ON agents (created_at, born) WHERE status <> 'dead';
CREATE INDEX messages_clear ON messages (agent_uuid, id) WHERE kind = 'clear';
CREATE INDEX messages_control ON messages (agent_uuid, id)
     WHERE kind IN ('configure', 'clear', 'mark', 'rewind', 'summary', 'uncompact');
CREATE INDEX messages_approval ON messages (agent_uuid, id) WHERE kind = 'approval';
CREATE INDEX mail_unread ON mail (recipient, id) WHERE read_at IS NULL;
CREATE INDEX mail_sender ON mail (recipient, sender, id);
CREATE INDEX mail_prompt ON mail (recipient, id) WHERE kind = 'prompt' AND read_at IS NULL;
CREATE INDEX documents_since ON documents (created_at, path, version, author);
CREATE INDEX restarts_supervisor ON restarts (supervisor_uuid, created_at);
CREATE INDEX requests_new ON requests (agent_uuid, id) WHERE answered_at IS NULL;
CREATE UNIQUE INDEX budgets_root ON budgets ((1)) WHERE above IS NULL;
CREATE INDEX spendings_labels ON spendings (labels, created_at, tokens, usd);
CREATE INDEX pauses_order ON pauses (budget, number);
CREATE INDEX timers_due ON timers (due_at);
CREATE INDEX groups_agent ON groups (agent_uuid);
CREATE INDEX rules_in_force ON rules (agent_uuid, id) WHERE removed_at IS NULL;
CREATE INDEX trees_parent ON trees (parent) WHERE parent IS NOT NULL;
CREATE INDEX monitors_watcher ON monitors (watcher);
CREATE UNIQUE INDEX guest_logs_name ON guest_logs (guest, scope, name) WHERE name IS NOT NULL;
CREATE INDEX guest_logs_parent ON guest_logs (parent, upto) WHERE parent IS NOT NULL;
CREATE INDEX guest_entries_about ON guest_entries (log, part, about);
CREATE INDEX guest_entries_tag ON guest_entries (tag) WHERE tag IS NOT NULL;
COMMIT;
