"""Who may publish and who may subscribe (IC-33): lists, and list canisters that are asked."""

from collections.abc import Callable
from typing import Any

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.canister import Answer, Context
from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.icrc72.orchestrator.state import Publication, Registry
from pubsub_emulator.eventplane.icrc72.role import RoleCanister
from pubsub_emulator.eventplane.icrc72.settings import Settings

Question = tuple[int, str, Principal]
"""A publication, which of its lists, and who is looked for."""


class Access:
    """Judges by lists and by what list canisters said last."""

    def __init__(self, state: Registry, settings: Settings, role: RoleCanister) -> None:
        self.state = state
        self.settings = settings
        self.role = role

    def may(self, publication: Publication, side: str, who: Principal) -> bool:
        """True when `who` may publish or subscribe (`side` is publishers or subscribers)."""
        if self._listed(publication, f"{side}:disallowed", who):
            return False
        allowed = f"{side}:allowed"
        if side == "publishers" and who == publication.config.creator:
            return True
        if self._listed(publication, allowed, who):
            return True
        config = publication.config
        return side == "subscribers" and allowed not in config.lists and allowed not in config.canisters

    @staticmethod
    def _listed(publication: Publication, which: str, who: Principal) -> bool:
        if who in publication.config.lists.get(which, ()):
            return True
        if which not in publication.config.canisters:
            return False
        said = publication.verdicts.get((which, who))
        return which.endswith(":disallowed") if said is None else said

    def questions(self, publication: Publication, side: str, who: Principal) -> list[Question]:
        """What list canisters must be asked to judge."""
        lists = (f"{side}:disallowed", f"{side}:allowed")
        return [(publication.id, which, who) for which in lists if which in publication.config.canisters]

    def ask(self, ctx: Context, questions: list[Question], then: Callable[[Context, set[Question]], None]) -> None:
        """Ask list canisters; `then` gets the questions that were not answered. Without questions it is called now."""
        left = len(questions)
        silent: set[Question] = set()
        if not left:
            then(ctx, silent)
            return

        def answered(ctx: Context, question: Question, values: tuple[Any, ...] | None) -> None:
            nonlocal left
            left -= 1
            if values is not None and len(values[0]) == 1:
                self._note(ctx, question, said=values[0][0])
            else:
                silent.add(question)
            if not left:
                then(ctx, silent)

        for question in questions:
            self._ask_one(ctx, question, answered)

    def _ask_one(
        self,
        ctx: Context,
        question: Question,
        answered: Callable[[Context, Question, tuple[Any, ...] | None], None],
    ) -> None:
        number, which, who = question
        canister, name = self.state.publications[number].config.canisters[which]

        def got(ctx: Context, values: tuple[Any, ...] | None, _answer: Answer) -> None:
            answered(ctx, question, values)

        self.role.ask(ctx, canister, "icrc75_is_member", ((Variant("Identity", who), ((name,),)),), then=got)

    def _note(self, ctx: Context, question: Question, *, said: bool) -> None:
        number, which, who = question
        publication = self.state.publications.get(number)
        if publication is not None:
            publication.verdicts[which, who] = said
            publication.heard[which, who] = ctx.now

    def stale(self, now: int) -> list[Question]:
        """Questions whose answer is due again; those unanswered for 300 rounds are a no."""
        found: list[Question] = []
        for publication in self.state.publications.values():
            if not publication.config.canisters:
                continue
            sides = (("publishers", publication.publishers), ("subscribers", publication.subscribers))
            for side, principals in sides:
                for who in principals:
                    for question in self.questions(publication, side, who):
                        key = question[1], who
                        heard = publication.heard.get(key, now)
                        if key in publication.heard and now - heard >= self.settings.list_silence:
                            publication.verdicts[key] = question[1].endswith(":disallowed")
                        if key not in publication.heard or now - heard >= self.settings.list_check:
                            found.append(question)
        return found


__all__ = ["Access", "Question"]
