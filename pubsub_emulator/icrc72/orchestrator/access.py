"""Access of publishers and subscribers (IC-33): lists, and list canisters."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from pubsub_emulator.icrc72.config import PublicationConfig
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.methods import IS_MEMBER, member
from pubsub_emulator.icrc72.orchestrator.state import Part, Publication, Said


class Question(NamedTuple):
    """Whether a list of a list canister has a principal; asked for a publication."""

    publication: int
    canister: Principal
    list: str
    who: Principal

    @property
    def said(self) -> Said:
        """Under which the answer is kept."""
        return self.canister, self.list, self.who


class Access(Part):
    """Judges by lists and by what list canisters said last."""

    def may(self, publication: Publication, side: str, who: Principal) -> bool:
        """True when `who` may publish or subscribe (`side` is publishers or subscribers)."""
        config, allowed = publication.config, f"{side}:allowed"
        if self._listed(publication, f"{side}:disallowed", who):
            return False
        anybody = side == "subscribers" and allowed not in config.lists and allowed not in config.canisters
        creates = side == "publishers" and who == config.creator
        return anybody or creates or self._listed(publication, allowed, who)

    @staticmethod
    def _listed(publication: Publication, which: str, who: Principal) -> bool:
        at = publication.config.canisters.get(which)
        said = at is not None and publication.verdicts.get((*at, who), which.endswith(":disallowed"))
        return said or who in publication.config.lists.get(which, ())

    def is_unheard(self, publication: Publication, side: str, who: Principal) -> bool:
        """True when a list canister has not said, or not for too long, whether it lists `who`."""
        return any(each.said not in publication.verdicts for each in self.questions(publication, side, who))

    def questions(self, publication: Publication, side: str, who: Principal) -> list[Question]:
        """The questions to list canisters that judging needs."""
        places = publication.config.canisters
        lists = (f"{side}:disallowed", f"{side}:allowed")
        return [Question(publication.id, *places[which], who) for which in lists if which in places]

    @staticmethod
    def questions_of_change(publication: Publication, config: PublicationConfig) -> list[Question]:
        """The questions about everybody registered to list canisters that `config` would bring (IC-33a)."""
        found: list[Question] = []
        for which, at in config.canisters.items():
            if publication.config.canisters.get(which) != at:
                publishes = which.startswith("publishers:")
                side = [*publication.publishers] if publishes else [*publication.subscribers]
                found += [Question(publication.id, *at, who) for who in side]
        return found

    def ask(self, ctx: Context, questions: list[Question], then: Callable[[Context, set[Question]], None]) -> None:
        """Ask list canisters; `then` gets the questions that were not answered. Without questions it is called now."""
        batches = self._batches(questions)
        left = len(batches)
        silent: set[Question] = set()

        def answered(batch: list[Question], ctx: Context, said: tuple[bool, ...] | None) -> None:
            nonlocal left
            left -= 1
            if said is not None and len(said) == len(batch):
                for question, listed in zip(batch, said, strict=True):
                    publication = self.state.publications.get(question.publication)
                    if publication is not None:
                        publication.verdicts[question.said] = listed
                        publication.heard[question.said] = ctx.now
            else:
                silent.update(batch)
            if not left:
                then(ctx, silent)

        for batch in batches:
            items = tuple(member(each.who, each.list) for each in batch)
            self.role.ask(ctx, batch[0].canister, IS_MEMBER, items, partial(answered, batch))
        if not batches:
            then(ctx, silent)

    def _batches(self, questions: list[Question]) -> list[list[Question]]:
        by_canister: dict[Principal, list[Question]] = {}
        for each in questions:
            by_canister.setdefault(each.canister, []).append(each)
        most = self.settings.batch_items
        return [asked[at : at + most] for asked in by_canister.values() for at in range(0, len(asked), most)]

    def stale(self, now: int) -> list[Question]:
        """Questions whose answer is due again; answers over 300 rounds old and those about strangers are forgotten."""
        found: list[Question] = []
        for publication in self.state.publications.values():
            if not publication.config.canisters:
                continue
            sides = [("publishers", who) for who in publication.publishers]
            sides += [("subscribers", who) for who in publication.subscribers]
            questions = [each for side, who in sides for each in self.questions(publication, side, who)]
            known = {each.said for each in questions}
            heard = publication.heard = {said: at for said, at in publication.heard.items() if said in known}
            fresh = {said for said, at in heard.items() if now - at < self.settings.list_silence}
            publication.verdicts = {said: verdict for said, verdict in publication.verdicts.items() if said in fresh}
            due = now - self.settings.list_check
            found += [each for each in questions if heard.get(each.said, due) <= due]
        return found
