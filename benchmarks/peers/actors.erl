%% What benchmarks/actors.py measures, done by Erlang's own processes. Prints one figure a line: its name, its value.
-module(actors).
-export([main/1]).

main([Started, Told, Rounds, Asked, Fan]) ->
    run(number(Started), number(Told), number(Rounds), number(Asked), number(Fan)).

run(Started, Told, Rounds, Asked, Fan) ->
    show(otp, list_to_integer(erlang:system_info(otp_release))),
    Before = resident(),
    {Starting, Pids} = seconds(fun() -> [spawn(fun loop/0) || _ <- lists:seq(1, Started)] end),
    show(memory, (resident() - Before) / Started),
    show(start, Started / Starting),
    {Stopping, _} = seconds(fun() -> stop(Pids) end),
    show(stop, Started / Stopping),
    One = spawn(fun loop/0),
    {Telling, _} = seconds(fun() -> [burst(One, Told) || _ <- lists:seq(1, Rounds)] end),
    show(tell, Told * Rounds / Telling),
    {Asking, _} = seconds(fun() -> [ask(One) || _ <- lists:seq(1, Asked)] end),
    show(ask, Asked / Asking),
    Many = [spawn(fun loop/0) || _ <- lists:seq(1, Fan)],
    {Fanning, _} = seconds(fun() -> fan_out(Many, Rounds) end),
    show(fan_out, Fan * Rounds / Fanning).

loop() ->
    receive
        {ask, From, Tag} -> From ! Tag, loop();
        stop -> ok;
        _ -> loop()
    end.

ask(Pid) ->
    Tag = make_ref(),
    Pid ! {ask, self(), Tag},
    receive Tag -> ok end.

burst(Pid, Count) ->
    [Pid ! nothing || _ <- lists:seq(1, Count)],
    ask(Pid).

fan_out(Pids, 1) ->
    Tag = make_ref(),
    [Pid ! {ask, self(), Tag} || Pid <- Pids],
    [receive Tag -> ok end || _ <- Pids];
fan_out(Pids, Rounds) ->
    [Pid ! nothing || Pid <- Pids],
    fan_out(Pids, Rounds - 1).

stop(Pids) ->
    Monitors = [monitor(process, Pid) || Pid <- Pids],
    [Pid ! stop || Pid <- Pids],
    [receive {'DOWN', Monitor, process, _, _} -> ok end || Monitor <- Monitors].

seconds(Work) ->
    {Time, Result} = timer:tc(Work),
    {Time / 1.0e6, Result}.

%% As the system counts, where it tells; else as the virtual machine does.
resident() ->
    case file:open("/proc/self/statm", [read]) of
        {ok, File} ->
            {ok, Line} = file:read_line(File),
            file:close(File),
            list_to_integer(lists:nth(2, string:tokens(Line, " \n"))) * 4096;
        _ -> erlang:memory(total)
    end.

show(Name, Value) -> io:format("~s ~f~n", [Name, float(Value)]).

number(Text) -> list_to_integer(Text).
