from ikigai_actors.sight.observer import Observer as Observer
from ikigai_actors.sight.observer import observe as observe
from ikigai_actors.sight.traces.live import Tracing as Tracing
from ikigai_actors.sight.traces.live import TurnTracer as TurnTracer
from ikigai_actors.sight.traces.live import trace_turns as trace_turns
from ikigai_actors.sight.traces.metering import Metering as Metering
