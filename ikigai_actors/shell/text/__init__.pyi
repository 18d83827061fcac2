from ikigai_actors.shell.text.harmless import as_json as as_json
from ikigai_actors.shell.text.naming import called as called
from ikigai_actors.shell.text.naming import named as named
from ikigai_actors.shell.text.rows import agent_row as agent_row
from ikigai_actors.shell.text.rows import as_row as as_row
