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
from interchain_events.icrc72.orchestrator.state import AnswerKey, Part, Publication


class Question(NamedTuple):
    """The question whether a list of a list canister contains a principal."""

    publication: int
    """The id of the publication that needs the answer."""
    canister: Principal
    list: str
    who: Principal

    @property
    def key(self) -> AnswerKey:
        """Return the key under which the publication remembers the answer."""
        return self.canister, self.list, self.who


class Access(Part):
    """The part that decides who may publish and subscribe."""

    def may(self, publication: Publication, side: str, who: Principal) -> bool:
        """Return whether `who` may publish or subscribe, by the last answers of list canisters.

        `side` is `publishers` or `subscribers`. Without an allowed list, anybody may subscribe,
        but only the creator may publish, unless the setting `open_publications` is on. The draft
        does not decide this, and events of strangers would harm subscribers who trust the creator.
        The creator need not be on the allowed list of publishers.
        """
        config = publication.config
        allowed = f"{side}:allowed"
        if self._listed(publication, f"{side}:disallowed", who):
            return False
        is_open = side == "subscribers" or self.settings.open_publications
        has_list = allowed in config.lists or allowed in config.canisters
        is_creator = side == "publishers" and who == config.creator
        return (is_open and not has_list) or is_creator or self._listed(publication, allowed, who)

    @staticmethod
    def _listed(publication: Publication, name: str, who: Principal) -> bool:
        """Return whether a principal is on a list, in the configuration or at a list canister."""
        if who in publication.config.lists.get(name, ()):
            return True
        place = publication.config.canisters.get(name)
        if place is None:
            return False
        # Access is denied until there is an answer. So a missing answer counts as yes for a list of
        # disallowed principals, and as no for a list of allowed ones.
        without_answer = name.endswith(":disallowed")
        return publication.verdicts.get((*place, who), without_answer)

    def is_unheard(self, publication: Publication, side: str, who: Principal) -> bool:
        """Return whether a list canister's answer about `who` is missing or too old."""
        return any(
            question.key not in publication.verdicts
            for question in self.questions(publication, side, who)
        )

    def questions(self, publication: Publication, side: str, who: Principal) -> list[Question]:
        """Return the questions to list canisters on which the decision about `who` depends."""
        places = publication.config.canisters
        lists = (f"{side}:disallowed", f"{side}:allowed")
        return [Question(publication.id, *places[name], who) for name in lists if name in places]

    @staticmethod
    def questions_of_change(publication: Publication, config: PublicationConfig) -> list[Question]:
        """Return the questions that a changed configuration raises (IC-33a).

        These are about every registered member, for each list canister that `config` newly names.
        """
        questions: list[Question] = []
        for name, place in config.canisters.items():
            if publication.config.canisters.get(name) != place:
                if name.startswith("publishers:"):
                    members = list(publication.publishers)
                else:
                    members = list(publication.subscribers)
                questions += [Question(publication.id, *place, who) for who in members]
        return questions

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

        def answered(batch: list[Question], ctx: Context, answers: tuple[bool, ...] | None) -> None:
            nonlocal left
            left -= 1
            if answers is not None and len(answers) == len(batch):
                for question, listed in zip(batch, answers, strict=True):
                    # The publication may have been deleted in the meantime.
                    publication = self.state.publications.get(question.publication)
                    if publication is not None:
                        publication.verdicts[question.key] = listed
                        publication.heard[question.key] = ctx.now
            else:
                silent.update(batch)
            if not left:
                then(ctx, silent)

        for batch in batches:
            items = tuple(member(question.who, question.list) for question in batch)
            self.role.ask(ctx, batch[0].canister, IS_MEMBER, items, partial(answered, batch))
        if not batches:
            then(ctx, silent)

    def _batches(self, questions: list[Question]) -> list[list[Question]]:
        """Group questions into calls, each to one canister and of at most `batch_items` items."""
        by_canister: dict[Principal, list[Question]] = {}
        for question in questions:
            by_canister.setdefault(question.canister, []).append(question)
        most = self.settings.batch_items
        batches: list[list[Question]] = []
        for asked in by_canister.values():
            batches += [asked[start : start + most] for start in range(0, len(asked), most)]
        return batches

    def stale(self, now: int) -> list[Question]:
        """Forget old answers, and return the questions that must be asked again (IC-33a).

        A question is asked again when its answer is `list_check` rounds old. Answers that are
        older than `list_silence` rounds, and those about principals that are no longer registered,
        are forgotten.
        """
        stale: list[Question] = []
        for publication in self.state.publications.values():
            if not publication.config.canisters:
                continue
            members = [("publishers", who) for who in publication.publishers]
            members += [("subscribers", who) for who in publication.subscribers]
            questions: list[Question] = []
            for side, who in members:
                questions += self.questions(publication, side, who)
            known = {question.key for question in questions}
            heard = {key: round_ for key, round_ in publication.heard.items() if key in known}
            publication.heard = heard
            oldest = now - self.settings.list_silence
            publication.verdicts = {
                key: verdict
                for key, verdict in publication.verdicts.items()
                if key in heard and heard[key] > oldest
            }
            # A question without any answer counts as due.
            due = now - self.settings.list_check
            stale += [question for question in questions if heard.get(question.key, due) <= due]
        return stale
