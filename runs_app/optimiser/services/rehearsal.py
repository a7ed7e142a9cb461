"""Plays a run in memory: every answer is invented, and every kernel is correct and equally fast."""

from __future__ import annotations

from gpu_runner.data.evaluation import EvaluationResult, Measurement, WorkloadResult
from gpu_runner.data.verdict import Abi, Mode, Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.budget import cost_usd
from runs_app.optimiser.evolve.commands import Ask, Role
from runs_app.optimiser.evolve.config import Problem, RunConfig
from runs_app.optimiser.evolve.evaluations import LAST_MODES
from runs_app.optimiser.evolve.events import Answer, Evaluated, Outcome, Transition
from runs_app.optimiser.evolve.feedback import Feedback, feedback_of
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.evolve.optimizer import Optimizer

CALL_S = 30.0
_MOST_STEPS = 400
_CHARACTERS_A_TOKEN = 4  # of English and code, roughly
_SHORT_ANSWER, _LONG_ANSWER = 300, 2500  # tokens of a vote or a plan; of a kernel with thought


class Rehearsal:
    """One run in memory; it is its history's details too."""

    def __init__(self, problem: Problem, config: RunConfig) -> None:
        self.problem, self.config = problem, config
        self.history = History(self)
        self.optimizer = Optimizer(problem, config, self.history)
        self.sources: dict[int, str] = {}
        self.results: dict[int, Feedback] = {}
        self.answers: dict[int, str] = {}
        self.rankings = 0  # after the search, beyond all caps
        self.pending: list[Outcome] = []

    def play(self) -> bool:
        """Whether the run came to its end in the steps that a rehearsal may take."""
        return any(self._step() for _ in range(_MOST_STEPS))

    def first_asks(self) -> list[Ask]:
        """Play to the first calls that the strategy wants, whether the budget allows them or not.

        Empty if the run ends without any.
        """
        for _ in range(_MOST_STEPS):
            wanted = self.optimizer.strategy.ask(self.history)
            asks = [command for command in wanted if isinstance(command, Ask)]
            if asks or self._step():
                return asks
        return []

    def _step(self) -> bool:
        """Whether the run is over after what it does next."""
        self._carry_out(self.optimizer.ask())
        if self.history.finished is not None:
            return True
        if self.pending:
            self._tell(self.pending.pop(0))
        return False

    def source(self, candidate: int) -> str:
        return self.sources[candidate]

    def feedback(self, candidate: int) -> Feedback | None:
        return self.results.get(candidate)

    def answer(self, ask: int) -> str:
        return self.answers[ask]

    def _tell(self, outcome: Outcome) -> None:
        if isinstance(outcome, Evaluated) and outcome.result is not None:
            self.results[outcome.candidate] = feedback_of(outcome.result)
        self._carry_out(self.optimizer.tell(outcome))

    def _carry_out(self, transitions: list[Transition]) -> None:
        for transition in transitions:
            match transition.event:
                case events.Drafted() as drafted:
                    self.sources[drafted.number] = transition.source
                case events.Asked() as asked:
                    assert isinstance(transition.command, Ask), "an ask comes from a command"
                    self.pending.append(self._answered(asked, transition.command))
                case events.Measuring() as measuring:
                    self.rankings += measuring.mode in LAST_MODES
                    result = _result(measuring.candidate, measuring.mode)
                    self.pending.append(
                        Evaluated(candidate=measuring.candidate, mode=measuring.mode, result=result)
                    )

    def _answered(self, asked: events.Asked, command: Ask) -> Answer:
        text = self._text(asked)
        self.answers[asked.number] = text
        model = self.config.model(asked.model)
        tokens_in = sum(len(m.content) for m in command.prompt.messages) // _CHARACTERS_A_TOKEN
        usual = _LONG_ANSWER if command.role.writes_code else _SHORT_ANSWER
        tokens_out = min(usual, asked.max_tokens)
        used = events.Answered(
            ask=asked.number,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost_usd=cost_usd(model, tokens_in, tokens_out),
            latency_s=CALL_S,
        )
        return Answer(event=used, text=text)

    def _text(self, asked: events.Asked) -> str:
        """An answer that can be read in its role; each kernel differs from all others."""
        if asked.role in (Role.VERIFY, Role.REFLECT):
            return "It looks right.\nFINAL VERIFICATION ANSWER: True"
        if not asked.role.writes_code:
            return "Use wider loads, and unroll the innermost loop."
        # a table of its own, so that no kernel is taken for another one, or for much like it
        table = ", ".join(str(asked.number * 7919 * n % 1_000_003) for n in range(1, 200))
        body = self.problem.seed_source or _starter(self.problem)
        return f"```cpp\n{body}\nstatic const int rehearsal[] = {{{table}}};\n```"


def _starter(problem: Problem) -> str:
    """A kernel that does nothing, behind the right entry point."""
    if problem.abi is Abi.C:
        return f'extern "C" {problem.signature} {{}}\n'
    name = problem.direction.value
    return (
        "#include <torch/extension.h>\n"
        f"torch::Tensor {name}(torch::Tensor x) {{ return x; }}\n"
        f'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("{name}", &{name}); }}\n'
    )


def _result(candidate: int, mode: Mode) -> EvaluationResult:
    """Correct, and as fast as every other one."""
    time = Measurement(time_ns=1e5, low_ns=0.99e5, high_ns=1.01e5, calls=30)
    workload = WorkloadResult(name="rehearsal", parameters={}, hidden=False, measurement=time)
    return EvaluationResult(
        evaluation_id=str(candidate),
        attempt=1,
        verdict=Verdict.CORRECT,
        reason="",
        mode=mode,
        device="",
        task="",
        task_digest="",
        solution_digest="",
        latency_ns=1e5,
        workloads=(workload,),
    )
