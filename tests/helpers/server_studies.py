"""Studies that servers are tested with."""

import surepick as sp


def make_study(url, name, ids="abc", **more):
    policy = sp.make_policy("certified-independent", sp.Arms(ids=[*ids]), epsilon=0.5, delta=0.1, noise="subgaussian:1")
    return sp.create_study(url, name, policy, **more)
