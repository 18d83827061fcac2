%% Plays scenarios (tests/supervision.py) with the real supervisor of Erlang/OTP, all side by side, in real seconds.
%%
%% In: a file with one term for each, {Number, Strategy, Intensity, Period, [{Child, RestartType}], [{What, Child,
%% RestartType, Second}], [FailingStart]}. Out: a line for each, its number and its events; "late" is one that the
%% machine was too slow for.
-module(erlang_check).
-export([main/1, init/1, start_child/2, child/3]).

main([File]) ->
    ok = logger:set_primary_config(level, none),
    {ok, Scenarios} = file:consult(File),
    Base = erlang:monotonic_time(second) + 2,
    Self = self(),
    [spawn(fun() -> Self ! {N, catch play(Scenario, Base)} end) || Scenario <- Scenarios, N <- [element(1, Scenario)]],
    [receive {N, Events} -> io:format("~w ~ts~n", [N, lists:join("|", Events)]) end
     || Scenario <- Scenarios, N <- [element(1, Scenario)]].

play({_, Strategy, Intensity, Period, Children, Ops, Failing}, Base) ->
    process_flag(trap_exit, true),
    Log = spawn_link(fun() -> log(#{events => [], count => 0, failing => [], begun => false, surely => false}) end),
    Flags = #{strategy => Strategy, intensity => Intensity, period => Period},
    {ok, Sup} = supervisor:start_link(?MODULE, {Flags, [spec(Log, Id, Type) || {Id, Type} <- Children]}),
    ask(Log, {failing, Failing}),
    Late = lists:any(fun({What, Id, Type, Second}) -> late(Base + Second, fun() -> op(What, Id, Type, Sup, Log) end) end,
                     Ops),
    case Late of
        true -> ["late"];
        false -> ask(Log, events)
    end.

%% Does something in the middle of a second; tells whether that second is over.
late(Second, Do) ->
    timer:sleep(max(0, Second * 1000 + 200 - erlang:monotonic_time(millisecond))),
    Do(),
    erlang:monotonic_time(second) =/= Second.

%% Something happens, if it can.
op(What, Id, Type, Sup, Log) ->
    case children(Sup) of
        gone -> ok;
        Children ->
            case happens(What, Id, Type, proplists:get_value(Id, Children, none), Sup, Log) of
                true -> state(Sup, Log);
                false -> ok
            end
    end.

happens(fork, Id, Type, none, Sup, Log) ->
    ask(Log, surely),
    {ok, _} = supervisor:start_child(Sup, spec(Log, Id, Type)),
    true;
happens(kill, Id, _, Pid, Sup, _) when is_pid(Pid) ->
    ok = supervisor:terminate_child(Sup, Id),
    supervisor:delete_child(Sup, Id),
    true;
happens(Reason, Id, _, Pid, Sup, _) when is_pid(Pid), Reason =:= crash orelse Reason =:= normal ->
    {ok, #{restart := Restart}} = supervisor:get_childspec(Sup, Id),
    Pid ! {exit, Reason},
    settle(Sup, Id, Pid),
    Restart =:= transient andalso Reason =:= normal andalso supervisor:delete_child(Sup, Id),
    true;
happens(_, _, _, _, _, _) ->
    false.

%% Waits until the supervisor has dealt with the end of a child, and tries nothing again.
settle(Sup, Id, Pid) ->
    case children(Sup) of
        gone -> ok;
        Now ->
            case lists:member({Id, Pid}, Now) orelse lists:keymember(restarting, 2, Now) of
                true -> erlang:yield(), settle(Sup, Id, Pid);
                false -> ok
            end
    end.

state(Sup, Log) ->
    case children(Sup) of
        gone -> ask(Log, {note, "gave up"});
        Now ->
            {Up, Down} = lists:partition(fun({_, Pid}) -> is_pid(Pid) end, Now),
            ask(Log, {note, ["up ", names(Up), ", down ", names(Down)]})
    end.

names(Children) -> lists:join(" ", [atom_to_list(Id) || {Id, _} <- Children]).

%% The children in start order, each with its pid, undefined or restarting.
children(Sup) ->
    try lists:reverse([{Id, Pid} || {Id, Pid, _, _} <- supervisor:which_children(Sup)])
    catch exit:_ -> gone
    end.

init({Flags, Specs}) -> {ok, {Flags, Specs}}.

spec(Log, Id, Type) ->
    #{id => Id, start => {?MODULE, start_child, [Log, Id]}, restart => Type, shutdown => infinity}.

start_child(Log, Id) ->
    case ask(Log, {start, Id}) of
        true -> proc_lib:start_link(?MODULE, child, [Log, Id, self()]);
        false -> {error, refused}
    end.

child(Log, Id, Sup) ->
    process_flag(trap_exit, true),
    proc_lib:init_ack({ok, self()}),
    receive
        {exit, Reason} -> exit(Reason);
        {'EXIT', Sup, Reason} -> ask(Log, {note, ["stop ", atom_to_list(Id)]}), exit(Reason)
    end.

%% The one order of events. Asked, so that nothing happens before what is noted.
ask(Log, What) ->
    Ref = make_ref(),
    Log ! {self(), Ref, What},
    receive {Ref, Answer} -> Answer end.

log(State) ->
    receive
        {From, Ref, What} ->
            {Answer, NewState} = noted(What, State),
            From ! {Ref, Answer},
            log(NewState)
    end.

noted(events, #{events := Events} = State) -> {lists:reverse(Events), State};
noted({note, Event}, #{events := Events} = State) -> {ok, State#{events := [Event | Events]}};
noted({failing, Starts}, State) -> {ok, State#{failing := Starts, begun := true}};
noted(surely, State) -> {ok, State#{surely := true}};
noted({start, _}, #{begun := false} = State) -> {true, State};
noted({start, Id}, #{surely := true, events := Events} = State) ->
    {true, State#{surely := false, events := [["start ", atom_to_list(Id)] | Events]}};
noted({start, Id}, #{count := Count, failing := Failing, events := Events} = State) ->
    Well = not lists:member(Count + 1, Failing),
    Event = [case Well of true -> "start "; false -> "fail " end, atom_to_list(Id)],
    {Well, State#{count := Count + 1, events := [Event | Events]}}.
