# SPDX-License-Identifier: MIT
"""From which starts does a policy fail, and could it have done better?

    export PYTHONPATH=../python          # from a clone; installed, opc is found
    python3 starts.py RUN [EPISODES [OPENINGS]]

Plays EPISODES (100) starts with the policy of a run. Wherever it does not last 100 steps, it plays the same
start OPENINGS (200) times more, with four random actions before the policy takes over. A start that no
opening saves is perhaps lost whatever one does, and then no method can be blamed for it.
"""
import random
import sys

import opc

STEPS, OPENING = 100, 4


def last(env, policy, seed, opening):
    """Steps until the episode ends, at most STEPS, with these actions first."""
    observation, _ = env.reset(seed=seed)
    policy.reset()
    for step in range(STEPS):
        action = opening[step] if step < len(opening) else policy(observation)
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            return step + 1
    return STEPS


def main(run, episodes=100, openings=200):
    policy = opc.Policy.load(run)
    env = opc.Env(policy.config["env.name"])
    draw = random.Random(1)
    failed = lost = 0
    for seed in range(1, episodes + 1):
        length = last(env, policy, seed, [])
        if length == STEPS:
            continue
        failed += 1
        saved = sum(last(env, policy, seed, [[draw.uniform(a, b) for a, b in zip(policy.low, policy.high)]
                                             for _ in range(OPENING)]) == STEPS for _ in range(openings))
        lost += saved == 0
        print(f"start {seed}: ends after {length} steps; {saved} of {openings} openings save it", flush=True)
    print(f"{failed} of {episodes} starts fail, {lost} of them with every opening")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4 or not all(word.isdigit() for word in sys.argv[2:]):
        sys.exit("usage: python3 starts.py RUN [EPISODES [OPENINGS]]")
    main(sys.argv[1], *map(int, sys.argv[2:]))
