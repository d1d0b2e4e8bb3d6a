"""Events that libraries record, and listeners that hear of them.

Nothing is recorded by this library itself: what a program spends its time on, ``log_compiles``
and a profiler tell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from phalanx.base.boundary import bound
from phalanx.base.errors import ArgumentError
from phalanx.base.plain import brief

__all__ = [
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]

Listener = Callable[..., None]
_events: list[Listener] = []
_durations: list[Listener] = []
_spans: list[Listener] = []
_scalars: list[Listener] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Record an event: call the registered functions with it.

    Args:
        event: the name of the event.
        **kwargs: what else to tell of it, handed to the functions that listen.

    >>> register_event_listener(print)
    >>> record_event("step")
    step
    >>> unregister_event_listener(print)
    """
    _call(_events, event, kwargs=kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Record how long something took: call the registered functions with it.

    Args:
        event: the name of the event.
        duration: how long it took, in seconds.
        **kwargs: what else to tell of it, handed to the functions that listen.

    >>> heard = []
    >>> def listen(event, duration, **tags):
    ...     heard.append((event, duration))
    >>> register_event_duration_secs_listener(listen)
    >>> record_event_duration_secs("/my/step", 1.5)
    >>> unregister_event_duration_listener(listen)
    >>> heard
    [('/my/step', 1.5)]
    """
    _call(_durations, event, duration, kwargs=kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Record when something began and ended: call the registered functions with it.

    Args:
        event: the name of the event.
        start_time: when it began, in seconds.
        end_time: when it ended.
        **kwargs: what else to tell of it, handed to the functions that listen.

    >>> heard = []
    >>> def listen(event, start, end, **tags):
    ...     heard.append(end - start)
    >>> register_event_time_span_listener(listen)
    >>> record_event_time_span("/my/step", 1.0, 1.5)
    >>> unregister_event_time_span_listener(listen)
    >>> heard
    [0.5]
    """
    _call(_spans, event, start_time, end_time, kwargs=kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Record a number, such as a loss: call the registered functions with it.

    Args:
        event: the name of the event.
        value: the number, in the unit that the name of the event tells.
        **kwargs: what else to tell of it, handed to the functions that listen.

    >>> heard = []
    >>> def listen(event, value, **tags):
    ...     heard.append(value)
    >>> register_scalar_listener(listen)
    >>> record_scalar("/my/loss", 0.25)
    >>> unregister_scalar_listener(listen)
    >>> heard
    [0.25]
    """
    _call(_scalars, event, value, kwargs=kwargs)


def _call(listeners: list[Listener], *args: Any, kwargs: dict[str, Any]) -> None:
    for listener in [*listeners]:
        listener(*args, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Register a function that ``record_event`` calls from now on.

    Args:
        callback: a function, called as ``callback(event, **kwargs)``.

    Raises:
        TypeError: it is not a function.

    >>> from phalanx import monitoring
    >>> heard = lambda event, **kwargs: print(event, kwargs)
    >>> monitoring.register_event_listener(heard)
    >>> monitoring.record_event("/mine/saved", step=3)
    /mine/saved {'step': 3}
    >>> monitoring.unregister_event_listener(heard)
    """
    _add(_events, callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Register a function that ``record_event_duration_secs`` calls from now on.

    Args:
        callback: a function, called as ``callback(event, duration, **kwargs)`` with seconds.

    Raises:
        TypeError: it is not a function.

    >>> from phalanx import monitoring
    >>> heard = lambda event, duration, **kwargs: print(event, duration)
    >>> monitoring.register_event_duration_secs_listener(heard)
    >>> monitoring.record_event_duration_secs("/mine/step", 0.5)
    /mine/step 0.5
    >>> monitoring.unregister_event_duration_listener(heard)
    """
    _add(_durations, callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Register a function that ``record_event_time_span`` calls from now on.

    Args:
        callback: a function, called as ``callback(event, start_time, end_time, **kwargs)`` with
            seconds.

    Raises:
        TypeError: it is not a function.

    >>> from phalanx import monitoring
    >>> heard = lambda event, start, end, **kwargs: print(event, end - start)
    >>> monitoring.register_event_time_span_listener(heard)
    >>> monitoring.record_event_time_span("/mine/load", 1.0, 3.0)
    /mine/load 2.0
    >>> monitoring.unregister_event_time_span_listener(heard)
    """
    _add(_spans, callback)


def register_scalar_listener(callback: Listener) -> None:
    """Register a function that ``record_scalar`` calls from now on.

    Args:
        callback: a function, called as ``callback(event, value, **kwargs)``.

    Raises:
        TypeError: it is not a function.

    >>> from phalanx import monitoring
    >>> heard = lambda event, value, **kwargs: print(event, value)
    >>> monitoring.register_scalar_listener(heard)
    >>> monitoring.record_scalar("/mine/loss", 0.25)
    /mine/loss 0.25
    >>> monitoring.unregister_scalar_listener(heard)
    """
    _add(_scalars, callback)


def unregister_event_listener(callback: Listener) -> None:
    """Unregister a function: ``record_event`` calls it no more.

    Args:
        callback: the function that was registered, the same object.

    Raises:
        ValueError: it is not registered.

    >>> from phalanx import monitoring
    >>> heard = lambda event, **kwargs: print(event)
    >>> monitoring.register_event_listener(heard)
    >>> monitoring.unregister_event_listener(heard)
    >>> monitoring.record_event("/mine/saved")
    """
    _remove(_events, callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Unregister a function: ``record_event_duration_secs`` calls it no more.

    Args:
        callback: the function that was registered, the same object.

    Raises:
        ValueError: it is not registered.

    >>> from phalanx import monitoring
    >>> heard = lambda event, duration, **kwargs: print(event)
    >>> monitoring.register_event_duration_secs_listener(heard)
    >>> monitoring.unregister_event_duration_listener(heard)
    >>> monitoring.record_event_duration_secs("/mine/step", 0.5)
    """
    _remove(_durations, callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Unregister a function: ``record_event_time_span`` calls it no more.

    Args:
        callback: the function that was registered, the same object.

    Raises:
        ValueError: it is not registered.

    >>> from phalanx import monitoring
    >>> heard = lambda event, start, end, **kwargs: print(event)
    >>> monitoring.register_event_time_span_listener(heard)
    >>> monitoring.unregister_event_time_span_listener(heard)
    >>> monitoring.record_event_time_span("/mine/load", 1.0, 3.0)
    """
    _remove(_spans, callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Unregister a function: ``record_scalar`` calls it no more.

    Args:
        callback: the function that was registered, the same object.

    Raises:
        ValueError: it is not registered.

    >>> from phalanx import monitoring
    >>> heard = lambda event, value, **kwargs: print(event)
    >>> monitoring.register_scalar_listener(heard)
    >>> monitoring.unregister_scalar_listener(heard)
    >>> monitoring.record_scalar("/mine/loss", 0.25)
    """
    _remove(_scalars, callback)


def _add(listeners: list[Listener], callback: Listener) -> None:
    if not callable(callback):
        raise TypeError(f"monitoring: a listener is a function, got {brief(callback)}")
    listeners.append(callback)


def _remove(listeners: list[Listener], callback: Listener) -> None:
    if callback not in listeners:
        raise ArgumentError(f"monitoring: {callback!r} is not registered for this kind of events")
    listeners.remove(callback)


def clear_event_listeners() -> None:
    """Unregister all functions that ``register_*_listener`` registered, of every kind.

    >>> from phalanx import monitoring
    >>> monitoring.clear_event_listeners()
    """
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()


bound(sys.modules[__name__])
