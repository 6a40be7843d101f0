# SPDX-License-Identifier: MIT
"""What the package opc promises (docs/python.md), with numpy, without, and with Gymnasium's classes. Works in the
current folder; the first argument is the file of a small experiment."""
import gc
import math
import os
import pickle
import shutil
import signal
import sys
import threading
import unittest

import opc
from opc._arrays import numpy
from opc.env import gymnasium

SMOKE = sys.argv.pop(1)
PENDULUM = dict(members=2, elites=2, hidden=[16, 16], batch_size=32, max_epochs=3, weight_decay=1e-5)


def plain(values):
    """Arrays and tuples as lists, to compare."""
    if hasattr(values, "tolist"):
        return values.tolist()
    return [plain(v) if hasattr(v, "__len__") else v for v in values]


def record(env, past, episodes=3, steps=20):
    """Plays the pendulum with a policy that pumps energy in."""
    for i in range(episodes):
        s, _ = env.reset(seed=i)
        states, actions, rewards = [s], [], []
        for t in range(steps):
            a = [0.08 * s[2] + 0.2 * math.sin(3 * t + i)]
            s, r, *_ = env.step(env.scale(a))
            states.append(s), actions.append(a), rewards.append(r)
        past.add(states, actions, rewards)
    return past


class Environments(unittest.TestCase):
    def test_an_episode(self):
        with opc.Env("pendulum") as env:
            self.assertEqual((env.observations, env.actions, env.steps), (3, 1, 200))
            first, info = env.reset(seed=7)
            self.assertIsInstance(first, numpy.ndarray if numpy else list)
            self.assertEqual(info, {})
            self.assertIn(first, env.observation_space)
            for t in range(1, 201):
                s, r, terminated, truncated, info = env.step(env.action_space.sample())
                self.assertIsInstance(r, float)
                self.assertIs(type(truncated), bool)
                self.assertEqual((terminated, truncated), (False, t == 200))
            self.assertEqual(plain(env.reset(seed=7)[0]), plain(first))

    def test_seeds_name_episodes(self):
        env = opc.Env("cartpole")
        one = [plain(env.reset(seed=3)[0])] + [plain(env.reset()[0]) for _ in range(2)]
        two = [plain(env.reset(seed=3)[0])] + [plain(env.reset()[0]) for _ in range(2)]
        self.assertEqual(one, two)
        self.assertEqual(len({tuple(s) for s in one}), 3)
        self.assertNotEqual(plain(opc.Env("cartpole").reset()[0]), plain(opc.Env("cartpole").reset()[0]))

    def test_an_observation_stays_as_it_is(self):
        env = opc.Env("pendulum")
        first, _ = env.reset(seed=1)
        before = plain(first)
        env.step([2.0])
        self.assertEqual(plain(first), before)

    def test_state(self):
        env = opc.Env("pendulum")
        s, _ = env.reset(options={"state": [0.5, -1.0]})
        self.assertEqual(plain(s), [math.cos(0.5), math.sin(0.5), -1.0])
        self.assertEqual(plain(env.state), [0.5, -1.0])

    def test_scale_and_terminal(self):
        self.assertEqual(plain(opc.Env("pendulum").scale([0.5])), [1.0])
        env = opc.Env("cartpole")
        fallen = [0, 1.5, 0, 0]
        self.assertEqual(env.terminal([[0] * 4] * 2, [[0], [0]], [[0] * 4, fallen]), [False, True])

    def test_a_program_that_cannot_answer_is_no_answer(self):
        with open("mute.py", "w", encoding="utf-8") as file:
            file.write("class Mute:\n"
                       "    class box:\n"
                       "        low, high, shape = [-1.0], [1.0], (1,)\n"
                       "    observation_space = action_space = box\n"
                       "    def reset(self, seed=None, options=None):\n"
                       "        return [0.0], {}\n"
                       "    def step(self, a):\n"
                       "        return [0.0], 0.0, False, False, {}\n"
                       "    def terminal(self, s, a, following):\n"
                       "        raise RuntimeError('no idea')\n")
        env = opc.Env(f"exec:{sys.executable} -m opc.serve_env mute:Mute")
        env.reset(seed=1)
        with self.assertRaises(opc.Error) as caught:
            env.terminal([[0.0]], [[0.0]], [[0.0]])
        self.assertEqual(caught.exception.code, opc.Code.EENV)
        self.assertIn("no idea", caught.exception.text)

    def test_errors(self):
        with self.assertRaises(opc.Error) as caught:
            opc.Env("nowhere")
        self.assertEqual(caught.exception.code, opc.Code.EUSER)
        self.assertIn("'nowhere'", caught.exception.text)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.code, again.text), (caught.exception.code, caught.exception.text))
        env = opc.Env("pendulum")
        env.reset(seed=1)
        with self.assertRaises(opc.Error) as caught:
            env.step([math.nan])
        self.assertEqual(caught.exception.code, opc.Code.EDIVERGED)
        with self.assertRaises(ValueError):
            env.step([1.0, 2.0])
        for name, words in (("exec:./nothing", "./nothing"), ("exec:sh -c 'exit 3'", "status 3")):
            with self.assertRaises(opc.Error) as caught:
                opc.Env(name)
            self.assertEqual(caught.exception.code, opc.Code.EENV)
            self.assertIn(words, caught.exception.text)
        env.close()
        env.close()
        for use in (lambda: env.step([0.0]), env.reset, lambda: env.state, env.rest):
            with self.assertRaisesRegex(ValueError, "closed"):
                use()

    def test_gymnasium_knows_it(self):
        if gymnasium is None:
            self.assertIsInstance(opc.Env("pendulum").action_space, opc.Box)
        else:
            self.assertIsInstance(opc.Env("pendulum"), gymnasium.Env)
            self.assertIsInstance(opc.Env("pendulum").action_space, gymnasium.spaces.Box)


class Runs(unittest.TestCase):
    def test_a_run(self):
        epochs = []
        last = opc.train(SMOKE, out="run", on_epoch=epochs.append, threads=1)
        self.assertEqual([e.epoch for e in epochs], [1, 2, 3])
        self.assertEqual(last, epochs[-1])
        run = opc.read_run("run")
        self.assertEqual(len(run), 3)
        self.assertEqual(plain(run["eval_return"]), [e.eval_return for e in epochs])
        self.assertEqual((run.result["env_steps"], run.status["state"]), (300, "done"))
        self.assertEqual(run.config["env.name"], "cartpole")
        # all done: nothing is left to do, and another run is refused
        self.assertIsNone(opc.train(out="run", resume=True))
        with self.assertRaises(opc.Error) as caught:
            opc.train(SMOKE, out="run")
        self.assertEqual(caught.exception.code, opc.Code.EUSER)
        self.check_policy(run)

    def check_policy(self, run):
        """By the directory and by the file alone, one row and many; evaluate plays the same."""
        policy, env = run.policy(), opc.Env("cartpole")
        s, _ = env.reset(seed=5)
        action = policy(s)
        self.assertIsInstance(action, numpy.ndarray if numpy else list)
        self.assertEqual(plain(action), plain(opc.Policy.load("run/policy.opc")(s)))
        self.assertEqual(plain(policy([s, s])), [plain(action)] * 2)
        self.assertEqual(plain(action), plain(env.scale(policy.normalized(s))))
        drawn = []
        for _ in range(2):
            policy.reset(seed=1)
            drawn.append(plain(policy(s, explore=True)) + plain(policy([s, s], explore=True)))
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0][0], plain(action)[0])
        with self.assertRaises(ValueError):
            policy([0.0] * 3)
        played = opc.evaluate("run", 4, threads=1)
        self.assertEqual(len(played.returns), 4)
        self.assertAlmostEqual(played.mean, sum(played.returns) / 4)

    def test_what_is_no_run(self):
        """Nothing, a damaged policy, a run that has none yet: named, and a code that a program can read."""
        opc.train(SMOKE, {"train.epochs": 1}, out="one", threads=1)
        with open("one/policy.opc", "rb") as file, open("cut.opc", "wb") as cut:
            cut.write(file.read(2000))
        for name in ("policy.opc", "policy-best.opc"):
            os.remove(os.path.join("one", name))
        shutil.rmtree("one/checkpoints")
        for use, code, words in (
                (lambda: opc.Policy.load("nowhere"), opc.Code.EUSER, "nowhere"),
                (lambda: opc.Policy.load("cut.opc"), opc.Code.EDAMAGED, "cut.opc"),
                (lambda: opc.Policy.load("one"), opc.Code.EUSER, "no policy"),
                (lambda: opc.evaluate("nowhere", 1), opc.Code.EUSER, "nowhere"),
                (lambda: opc.train(out="nowhere", resume=True), opc.Code.EUSER, "nowhere")):
            with self.assertRaises(opc.Error) as caught:
                use()
            self.assertEqual(caught.exception.code, code)
            self.assertIn(words, caught.exception.text)

    def test_stop_and_resume_give_the_same_bytes(self):
        opc.train(SMOKE, out="whole", threads=1)
        stopped = opc.train(SMOKE, out="parts", on_epoch=lambda e: e.epoch == 1, threads=1)
        self.assertEqual(stopped.epoch, 1)
        self.assertIsNone(opc.read_run("parts").result)
        self.assertEqual(opc.train(out="parts", resume=True, threads=2).epoch, 3)
        for name in ("metrics.csv", "policy.opc", "result.json"):
            with open(os.path.join("whole", name), "rb") as a, open(os.path.join("parts", name), "rb") as b:
                self.assertEqual(a.read(), b.read(), name)

    def test_an_exception_passes_through(self):
        def fail(epoch):
            raise KeyError(epoch.epoch)
        with self.assertRaisesRegex(KeyError, "1"):
            opc.train(SMOKE, on_epoch=fail)

    def test_ctrl_c(self):
        # Long enough to be interrupted: it begins after the first epoch, and no epoch is the last.
        def interrupt(epoch):
            if epoch.epoch == 1:
                threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            opc.train(SMOKE, {"train.epochs": 1000000, "eval.episodes": 1}, on_epoch=interrupt, threads=1)

    def test_settings(self):
        config = opc.Config({"train": {"epochs": 3, "seed": 2}, "model.hidden": [16, 16]})
        self.assertEqual((config["train.epochs"], config["model.hidden"]), ("3", "[16, 16]"))
        with open("copy.yaml", "w") as file:
            file.write(str(config))
        self.assertEqual(str(opc.Config("copy.yaml")), str(config))
        for bad in ({"train.epochs": -1}, {"train.no_such": 1}):
            with self.assertRaises(opc.Error) as caught:
                opc.train(bad)
            self.assertEqual(caught.exception.code, opc.Code.EUSER)
        with self.assertRaises(opc.Error) as caught:
            opc.train("nowhere.yaml")
        self.assertEqual(caught.exception.code, opc.Code.EUSER)

    def test_a_half_written_table(self):
        os.makedirs("half", exist_ok=True)
        with open("half/meta.json", "w") as file:
            file.write("{}")
        with open("half/metrics.csv", "w") as file:
            file.write("epoch,eval_return\n1,\n2,5.5\n3,1")
        run = opc.read_run("half")
        self.assertEqual(plain(run["epoch"]), [1, 2])
        self.assertTrue(math.isnan(run["eval_return"][0]))
        with self.assertRaises(opc.Error):
            opc.read_run("nowhere")


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.env = opc.Env("pendulum")
        cls.past = record(cls.env, opc.Episodes(3, 1))
        cls.model = opc.Ensemble(3, 1, seed=4, **PENDULUM)
        cls.fit = cls.model.fit(cls.past)

    def test_fit(self):
        self.assertEqual(len(self.fit.holdout), 2)
        self.assertTrue(all(math.isfinite(x) for x in self.fit.holdout + [self.fit.train_loss]))
        again = opc.Ensemble(3, 1, seed=4, threads=2, **PENDULUM)
        self.assertEqual(again.fit(self.past), self.fit)
        self.assertEqual(plain(again.predict([1, 0, 0], [0])[0]), plain(self.model.predict([1, 0, 0], [0])[0]))

    def test_predict(self):
        s, a = [[1.0, 0.0, 0.5], [0.0, 1.0, -0.5]], [[0.1], [0.2]]
        states, rewards = self.model.predict(s, a, elite=[0, 1])
        for i in range(2):
            one, reward = self.model.predict(s[i], a[i], elite=i)
            self.assertEqual(plain(one), plain(states[i]))
            self.assertEqual(reward, rewards[i])
        drawn = [plain(self.model.predict(s, a, seed=k)[0]) for k in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        for bad in (dict(elite=2), dict(elite=-1), dict(elite=[0])):
            with self.assertRaises(ValueError):
                self.model.predict(s, a, **bad)

    def test_save_and_load(self):
        self.model.save("model.opc")
        loaded = opc.Ensemble.load("model.opc")
        self.assertEqual((loaded.observations, loaded.actions, loaded.members), (3, 1, 2))
        self.assertEqual(plain(loaded.predict([1, 0, 0], [0.3])[0]), plain(self.model.predict([1, 0, 0], [0.3])[0]))
        with open("model.opc", "r+b") as file:
            file.seek(-20, os.SEEK_END)
            file.write(b"damage")
        with self.assertRaises(opc.Error) as caught:
            opc.Ensemble.load("model.opc")
        self.assertEqual(caught.exception.code, opc.Code.EDAMAGED)

    def test_eq5_repeats_the_recording_and_eq2_does_not(self):
        starts = [(0, 0), (2, 5)]
        replayed = opc.rollout(self.past, None, "replay", starts=starts, horizon=10)
        corrected = opc.rollout(self.past, self.model, "corrected", starts=starts, horizon=10)
        learned = opc.rollout(self.past, self.model, "learned", starts=starts, horizon=10, mean=True)
        for a, b, c in zip(replayed, corrected, learned):
            self.assertEqual(plain(a.states), plain(b.states))
            self.assertEqual(plain(a.actions), plain(b.actions))
            self.assertNotEqual(plain(a.states), plain(c.states))
            self.assertEqual((len(b), b.end), (10, "horizon"))
        self.assertEqual((corrected[1].episode, corrected[1].time), (2, 5))
        self.assertEqual(len(corrected[0].states), 11)

    def test_eq5_by_hand(self):
        """One step with another action: s' = s_ref' + f(s, a) - f(s_ref, a_ref), in floats."""
        recorded, = opc.rollout(self.past, None, "replay", starts=[(1, 3)], horizon=1)
        step, = opc.rollout(self.past, self.model, starts=[(1, 3)], horizon=1, actions=[[[0.7]]])
        by_hand = []
        for e in range(self.model.elites):
            f, _ = self.model.predict(recorded.states[0], [0.7], elite=e)
            f_ref, _ = self.model.predict(recorded.states[0], recorded.actions[0], elite=e)
            by_hand.append([r + (x - y) for r, x, y in zip(recorded.states[1], f, f_ref)])
        gaps = [max(abs(x - y) for x, y in zip(step.states[1], hand)) for hand in by_hand]
        self.assertLess(min(gaps), 1e-6)

    def test_policies_in_rollouts(self):
        seen = []

        def policy(states):
            seen.append(len(states))
            return [[0.1 * s[2]] for s in states]
        paths = opc.rollout(self.past, self.model, n=4, horizon=3, policy=policy, env=self.env, seed=1)
        self.assertEqual(seen, [4, 4, 4])
        for path in paths:
            for s, a in zip(path.states, path.actions):
                self.assertAlmostEqual(a[0], 0.1 * s[2], places=6)
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            opc.rollout(self.past, self.model, n=4, horizon=3, policy=lambda states: 1 / 0)
        with self.assertRaisesRegex(ValueError, "1 actions for 4 states"):
            opc.rollout(self.past, self.model, n=4, horizon=3, policy=lambda states: [[0.0]])

    def test_a_trained_policy_in_rollouts_that_end(self):
        opc.train(SMOKE, {"train.epochs": 1}, out="short", threads=1)
        policy, env, past = opc.Policy.load("short"), opc.Env("cartpole"), opc.Episodes(4, 1)
        s, _ = env.reset(seed=1)
        states, actions, rewards, terminated = [s], [], [], False
        while not terminated:
            a = policy.normalized(s)
            s, r, terminated, *_ = env.step(env.scale(a))
            states.append(s), actions.append(a), rewards.append(r)
        past.add(states, actions, rewards, terminated)
        path, = opc.rollout(past, None, "replay", starts=[(0, 0)], horizon=1000, env=env)
        self.assertEqual((len(path), path.end), (len(rewards), "terminal"))
        model = opc.Ensemble(4, 1, **PENDULUM)
        model.fit(past)
        path, = opc.rollout(past, model, starts=[(0, 0)], horizon=1000, policy=policy, env=env)
        self.assertEqual(len(path), len(rewards))

    def test_refusals(self):
        for bad in (dict(starts=[(9, 0)]), dict(starts=[(0, 20)]), dict(), dict(n=0), dict(starts=[]),
                    dict(n=1, horizon=0), dict(n=1, actions=[[[0.0]] * 2]), dict(n=1, model=None),
                    dict(n=1, env=opc.Env("cartpole"))):
            with self.subTest(**bad), self.assertRaises(ValueError):
                opc.rollout(self.past, **{"model": self.model, "horizon": 3, **bad})
        with self.assertRaises(opc.Error) as caught:
            opc.rollout(self.past, self.model, "imagined", n=1, horizon=3)
        self.assertEqual(caught.exception.code, opc.Code.EUSER)
        with self.assertRaises(ValueError):
            opc.Ensemble(3, 1).predict([1, 0, 0], [0])
        with self.assertRaises(opc.Error):
            opc.Ensemble(3, 1, no_such=1)
        past = opc.Episodes(3, 1)
        for states, actions, rewards in (([[0] * 3], [], []), ([[0] * 3] * 2, [[0]] * 2, [0, 0]),
                                         ([[0] * 2] * 2, [[0]], [0])):
            with self.assertRaises(ValueError):
                past.add(states, actions, rewards)
        with self.assertRaises(opc.Error) as caught:
            past.add([[0] * 3, [math.nan] * 3], [[0]], [0])
        self.assertEqual((caught.exception.code, len(past)), (opc.Code.EENV, 0))


class Package(unittest.TestCase):
    def test_names(self):
        for name in opc.__all__:
            self.assertTrue(callable(getattr(opc, name)), name)
        with self.assertRaises(AttributeError):
            opc.nothing
        gc.collect()


if __name__ == "__main__":
    print("numpy:", numpy and numpy.__version__, " Gymnasium:", gymnasium and gymnasium.__version__)
    unittest.main()
