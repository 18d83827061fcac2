%% What benchmarks/actors.py and cascade.py measure, done by Erlang's own processes. The arguments are figures that are
%% wanted, each a name, a size, and how many messages in all; prints a line for each: its name, its size, its value.
-module(actors).
-export([main/1]).

main([]) -> ok;
main([Name, Size, Messages | Others]) ->
    Value = figure(Name, list_to_integer(Size), list_to_integer(Messages)),
    io:format("~s ~s ~f~n", [Name, Size, float(Value)]),
    main(Others).

figure("idle", Size, _) ->
    Before = resident(),
    Pids = start(Size),
    Grown = resident() - Before,
    stop(Pids),
    Grown / Size;
figure("start", Size, _) ->
    {Taken, Pids} = seconds(fun() -> start(Size) end),
    stop(Pids),
    Size / Taken;
figure("stop", Size, _) ->
    Pids = start(Size),
    Size / taken(fun() -> stop(Pids) end);
figure("tell", Size, Messages) ->
    Rounds = max(1, Messages div Size),
    [One] = start(1),
    Size * Rounds / taken(fun() -> [burst(One, Size) || _ <- lists:seq(1, Rounds)] end);
figure("fan-out", Size, Messages) ->
    Rounds = max(1, Messages div Size),
    Many = start(Size),
    Rate = Size * Rounds / taken(fun() -> fan_out(Many, Rounds) end),
    stop(Many),
    Rate;
figure("ask", Size, _) ->
    [One] = start(1),
    Size / taken(fun() -> [ask(One) || _ <- lists:seq(1, Size)] end);
%% Seconds to kill a process and so many linked below it, each with ten children or with one.
figure("kill-tree", Size, _) -> kill(Size, 10);
figure("kill-chain", Size, _) -> kill(Size, 1).

kill(Size, Children) ->
    Self = self(),
    Top = spawn(fun() -> branch(0, Size, Children, Self) end),
    Monitors = [receive {born, Pid} -> monitor(process, Pid) end || _ <- lists:seq(0, Size)],
    taken(fun() ->
        exit(Top, kill),
        downs(length(Monitors))
    end).

branch(Place, Size, Children, Observer) ->
    First = Place * Children + 1,
    [spawn_link(fun() -> branch(Child, Size, Children, Observer) end)
     || Child <- lists:seq(First, First + Children - 1), Child =< Size],
    Observer ! {born, self()},
    loop().

start(Count) -> [spawn(fun loop/0) || _ <- lists:seq(1, Count)].

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
    downs(length(Monitors)).

%% In any order: to wait for each in turn would look through all that came before it.
downs(Count) -> [receive {'DOWN', _, process, _, _} -> ok end || _ <- lists:seq(1, Count)].

taken(Work) -> element(1, seconds(Work)).

seconds(Work) ->
    {Time, Result} = timer:tc(Work),
    {max(Time, 1) / 1.0e6, Result}.

%% As the system counts, where it tells; else as the virtual machine does.
resident() ->
    case file:open("/proc/self/statm", [read]) of
        {ok, File} ->
            {ok, Line} = file:read_line(File),
            file:close(File),
            list_to_integer(lists:nth(2, string:tokens(Line, " \n"))) * 4096;
        _ -> erlang:memory(total)
    end.
