"""A stand-in: a run does the tasks in the order of their dependencies. One that failed starts
those that wait for a failure, and the run then fails."""

import functools

RUNS = []  # of the graphs that were made: RUNS[0]("2026-01-04")


class Node:
    def __init__(self, fn, args, rule):
        self.fn, self.args, self.rule, self.after = fn, args, rule, []
        GRAPH.append(self)

    def __rshift__(self, others):
        for other in others if isinstance(others, list) else [others]:
            other.after.append(self)
        return others


GRAPH = []


def task(fn=None, *, retries=0, trigger_rule="all_success"):
    if fn is None:
        return functools.partial(task, retries=retries, trigger_rule=trigger_rule)
    return lambda *args: Node(fn, args or (("{{ ds }}",) if fn.__code__.co_argcount else ()), trigger_rule)


def dag(**_):
    def make(fn):
        def graph():
            GRAPH.clear()
            fn()
            nodes = list(GRAPH)

            def run(day):
                done, failed = {}, {}

                def value(a):
                    return done[a] if isinstance(a, Node) else day if a == "{{ ds }}" else a

                for n in nodes:
                    before = n.after + [a for a in n.args if isinstance(a, Node)]
                    bad = any(b in failed for b in before)
                    if bad != (n.rule == "one_failed"):
                        if bad:
                            failed[n] = None
                        continue
                    try:
                        done[n] = n.fn(*map(value, n.args))
                    except Exception as e:
                        failed[n] = e
                for e in failed.values():
                    if e is not None:
                        raise e
                return done[nodes[0]]

            RUNS.append(run)

        return graph

    return make
