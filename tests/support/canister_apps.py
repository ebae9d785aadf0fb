"""Two canisters that most stories of ICRC-72 need."""

from pubsub_emulator.icrc72.client import App, Context, EventNotification, plain


class Source(App):
    """Publishes numbers: the method is the namespace."""

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        self.emit(ctx, method, {"n": int(arg)})
        ctx.reply(b"")


class Sink(App):
    """Keeps the numbers that it handled."""

    def on_event(self, _ctx: Context, event: EventNotification) -> None:
        self.data.append(plain(event.data)["n"])
