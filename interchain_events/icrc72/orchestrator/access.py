"""Access of publishers and subscribers by lists and list canisters (IC-33).

A publication has four lists: allowed and disallowed publishers and subscribers. Each is written in
its configuration or kept by a list canister (ICRC-75), which the orchestrator asks by calls. The
last answers are remembered, so that most decisions need no call.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from interchain_events.icrc72.config import PublicationConfig
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.methods import IS_MEMBER, member
from interchain_events.icrc72.orchestrator.state import Part, Publication, Said


class Question(NamedTuple):
    """The question whether a list of a list canister contains a principal."""

    publication: int
    """The id of the publication that needs the answer."""
    canister: Principal
    list: str
    who: Principal

    @property
    def said(self) -> Said:
        """Return the key under which the publication remembers the answer."""
        return self.canister, self.list, self.who


class Access(Part):
    """The part that decides who may publish and subscribe."""

    def may(self, publication: Publication, side: str, who: Principal) -> bool:
        """Return whether `who` may publish or subscribe, by the last answers of list canisters.

        `side` is `publishers` or `subscribers`. Without an allowed list, anybody may subscribe.
        Only the creator may then publish, unless the setting `open_publications` is on: the draft
        does not say, and events of strangers in a namespace harm those who trust its creator. The
        creator need not be on the allowed list of publishers.
        """
        config, allowed = publication.config, f"{side}:allowed"
        if self._listed(publication, f"{side}:disallowed", who):
            return False
        anybody = (
            (side == "subscribers" or self.settings.open_publications)
            and allowed not in config.lists
            and allowed not in config.canisters
        )
        creates = side == "publishers" and who == config.creator
        return anybody or creates or self._listed(publication, allowed, who)

    @staticmethod
    def _listed(publication: Publication, which: str, who: Principal) -> bool:
        """Return whether a principal is on a list, in the configuration or at a list canister."""
        at = publication.config.canisters.get(which)
        # Without an answer, access is denied: as if disallowed, and as if not allowed.
        said = at is not None and publication.verdicts.get(
            (*at, who), which.endswith(":disallowed")
        )
        return said or who in publication.config.lists.get(which, ())

    def is_unheard(self, publication: Publication, side: str, who: Principal) -> bool:
        """Return whether a list canister's answer about `who` is missing or too old."""
        return any(
            each.said not in publication.verdicts for each in self.questions(publication, side, who)
        )

    def questions(self, publication: Publication, side: str, who: Principal) -> list[Question]:
        """Return the questions to list canisters on which the decision about `who` depends."""
        places = publication.config.canisters
        lists = (f"{side}:disallowed", f"{side}:allowed")
        return [Question(publication.id, *places[which], who) for which in lists if which in places]

    @staticmethod
    def questions_of_change(publication: Publication, config: PublicationConfig) -> list[Question]:
        """Return the questions that a changed configuration raises (IC-33a).

        These are about every registered member, for each list canister that `config` newly names.
        """
        found: list[Question] = []
        for which, at in config.canisters.items():
            if publication.config.canisters.get(which) != at:
                publishes = which.startswith("publishers:")
                side = [*publication.publishers] if publishes else [*publication.subscribers]
                found += [Question(publication.id, *at, who) for who in side]
        return found

    def ask(
        self,
        ctx: Context,
        questions: list[Question],
        then: Callable[[Context, set[Question]], None],
    ) -> None:
        """Ask list canisters and remember their answers.

        `then` is called once, after the last answer, with the questions that got no usable answer.
        It is called at once if there are no questions.
        """
        batches = self._batches(questions)
        left = len(batches)
        silent: set[Question] = set()

        def answered(batch: list[Question], ctx: Context, said: tuple[bool, ...] | None) -> None:
            nonlocal left
            left -= 1
            if said is not None and len(said) == len(batch):
                for question, listed in zip(batch, said, strict=True):
                    # It may have been deleted in the meantime.
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
        """Group questions into calls, each to one canister and of at most `batch_items` items."""
        by_canister: dict[Principal, list[Question]] = {}
        for each in questions:
            by_canister.setdefault(each.canister, []).append(each)
        most = self.settings.batch_items
        batches: list[list[Question]] = []
        for asked in by_canister.values():
            batches += [asked[at : at + most] for at in range(0, len(asked), most)]
        return batches

    def stale(self, now: int) -> list[Question]:
        """Return the questions that must be asked again, and forget old answers (IC-33a).

        Answers are due again after `list_check` rounds. Those older than `list_silence` rounds, and
        those about principals that are no longer registered, are forgotten.
        """
        found: list[Question] = []
        for publication in self.state.publications.values():
            if not publication.config.canisters:
                continue
            sides = [("publishers", who) for who in publication.publishers]
            sides += [("subscribers", who) for who in publication.subscribers]
            questions: list[Question] = []
            for side, who in sides:
                questions += self.questions(publication, side, who)
            known = {each.said for each in questions}
            heard = publication.heard = {
                said: at for said, at in publication.heard.items() if said in known
            }
            fresh = {said for said, at in heard.items() if now - at < self.settings.list_silence}
            publication.verdicts = {
                said: verdict for said, verdict in publication.verdicts.items() if said in fresh
            }
            due = now - self.settings.list_check
            found += [each for each in questions if heard.get(each.said, due) <= due]
        return found
