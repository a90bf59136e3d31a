"""mini-swe-agent: a model that sends the messages that fit.

    agent = DefaultAgent(ContextModel(LitellmModel(model_name=...), window=32_000), env, ...)
"""

from .keeper import ContextKeeper
from .messages import extended, opening


class ContextModel:
    """A model with messages for chat completions. The agent's messages are not changed."""

    def __init__(self, model, name=None, *, keeper=None, session=None, **options):
        """``name`` is the model for ctx, unless ``window`` is given. ``session`` is the id of the
        conversation; by default it is found by the first message of the user, which has the task."""
        self.model = model
        self.keeper = keeper or ContextKeeper(name, **options)
        self._session = session

    def query(self, messages, **kwargs):
        # ``extra`` is for the agent only.
        given = [{key: value for key, value in message.items() if key != "extra"} for message in messages]
        fitted = self.keeper.fit_or_keep(given, session=self._session or opening(given))
        if fitted is not None:
            own = [messages[at] if at is not None else new for at, new in fitted.own]
            messages = extended(own, fitted.system_addition)
        return self.model.query(messages, **kwargs)

    def __getattr__(self, name):
        return getattr(self.model, name)
