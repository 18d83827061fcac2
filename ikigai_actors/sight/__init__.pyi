from ikigai_actors.sight.observer import Observer as Observer
from ikigai_actors.sight.observer import observe as observe
