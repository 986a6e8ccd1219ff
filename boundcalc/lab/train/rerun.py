"""Training stored trials again: the record says how, and the result must be the same."""

from __future__ import annotations

from boundcalc.lab.train.store import Store


def rerun_some(store: Store, count: int) -> list[str]:
    """Train some trials again, in the stacks they were trained in; what differs."""
    import torch

    from boundcalc.lab.train.device import versions
    from boundcalc.lab.train.trainer import stack_of, train

    problems: list[str] = []
    records = list(store.records())
    for record in records[:: max(1, len(records) // count)][:count]:
        threads = torch.get_num_threads()
        torch.set_num_threads(record.result["threads"])
        try:
            mates = stack_of(record.trial, record.result)
            outcomes = {o.trial.hash: o.result for o in train(mates, path=record.result["path"])}
        finally:
            torch.set_num_threads(threads)
        again = outcomes[record.hash]
        if again["test"] != record.result["test"] or again["curves"] != record.result["curves"]:
            same = versions() == record.result["versions"]
            why = "" if same else f" (then with {record.result['versions']}, now with {versions()})"
            problems.append(
                f"{record.hash[:12]}: trained again, its test error is {again['test']['error']:.4f} after "
                f"{again['steps']} steps, not {record.result['test']['error']:.4f} after {record.result['steps']}{why}"
            )
    return problems
