"""Spectral efficiencies from the definitions alone: true channels, loops over phones, no shortcut of the library."""

import math
from dataclasses import dataclass

import numpy as np

from fewer.systems.cellfree.task.spectral.channels import Channels, Complexes, channels, white_noise
from fewer.systems.cellfree.task.spectral.efficiency import Radio, Setup, assign_pilots, local_scattering


def draw_with_truth(statistics: Channels, realisations: int, *, seed: int = 0) -> tuple[Complexes, Complexes]:
    """True channels and their estimates, (R, L, K, N) each: fading, pilots on the air, noise, then the estimator."""
    points, phones, antennas, _ = statistics.covariance.shape
    generator = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(statistics.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    fading = (root @ white_noise(generator, (realisations, points, phones, antennas))[..., None])[..., 0]
    count = int(statistics.pilots.max()) + 1
    received = white_noise(generator, (realisations, points, count, antennas))
    for phone, pilot in enumerate(statistics.pilots):
        received[:, :, pilot] += math.sqrt(statistics.pilot_energy) * fading[:, :, phone]
    estimate = (statistics.filter @ received[:, :, statistics.pilots][..., None])[..., 0]
    return fading, estimate


@dataclass(frozen=True)
class Scene:
    """A small network with uneven clusters and pilots used twice."""

    gain_db: np.ndarray
    clusters: np.ndarray
    correlation: np.ndarray | None
    radio: Radio

    @property
    def gain(self) -> np.ndarray:
        return self.radio.gain_over_noise(self.gain_db)

    @property
    def pilots(self) -> np.ndarray:
        return assign_pilots(self.gain_db, self.radio.pilot_symbols)

    @property
    def channels(self) -> Channels:
        energy = self.radio.uplink_mw * self.radio.pilot_symbols
        return channels(
            self.gain, self.pilots, pilot_energy=energy, antennas=self.radio.antennas, correlation=self.correlation
        )

    def setup(self, scheme: str, **settings: int) -> Setup:
        return Setup(scheme=scheme, radio=self.radio, **settings)


def scene(
    antennas: int, *, correlated: bool = False, seed: int = 0, weighting: str = "n-opt", density: float = 0.6
) -> Scene:
    rng = np.random.default_rng(seed)
    gain_db = rng.uniform(-125, -100, (5, 4))
    clusters = rng.random((5, 4)) < density
    clusters[np.arange(5), gain_db.argmax(axis=1)] = True
    correlation = local_scattering(rng.uniform(-3, 3, (5, 4)), antennas, spread_degrees=20) if correlated else None
    return Scene(gain_db, clusters, correlation, Radio(antennas=antennas, pilot_symbols=3, weighting=weighting))


def combiners(view: Scene, estimate: np.ndarray, scheme: str) -> np.ndarray:
    """v_kl by the textbook, (R, K, L, N), zero where an access point does not serve; all phones at full power."""
    error = view.channels.error
    draws, points, phones, antennas = estimate.shape
    power = view.radio.uplink_mw
    result = np.zeros((draws, phones, points, antennas), dtype=complex)
    for phone in range(phones):
        servers = np.flatnonzero(view.clusters[phone])
        if scheme in ("mr", "lp-mmse"):
            for point in servers:
                own = estimate[:, point, phone]
                if scheme == "lp-mmse":
                    matrix = np.eye(antennas)
                    for other in np.flatnonzero(view.clusters[:, point]):
                        h = estimate[:, point, other]
                        matrix = matrix + power * (h[:, :, None] * h[:, None].conj() + error[point, other])
                    own = np.linalg.solve(matrix, own[..., None])[..., 0]
                result[:, phone, point] = own
            continue
        size = len(servers) * antennas
        matrix = np.eye(size)
        for other in range(phones):
            if scheme == "p-mmse" and not (view.clusters[phone] & view.clusters[other]).any():
                continue
            h = estimate[:, servers, other].reshape(draws, size)
            block = np.zeros((size, size), dtype=complex)
            for place, point in enumerate(servers):
                part = slice(place * antennas, (place + 1) * antennas)
                block[part, part] = error[point, other]
            matrix = matrix + power * (h[:, :, None] * h[:, None].conj() + block)
        own = estimate[:, servers, phone].reshape(draws, size, 1)
        result[:, phone, servers] = np.linalg.solve(matrix, own).reshape(draws, len(servers), antennas)
    return result


def gathered(vectors: np.ndarray, channel: np.ndarray) -> np.ndarray:
    """v_kl^H h_il for all k, i, l: (R, K, K, L)."""
    return np.einsum("rkln,rlin->rkil", vectors.conj(), channel)


def missed_power(view: Scene, vectors: np.ndarray) -> np.ndarray:
    """E |v_kl^H e_il|^2 of the estimates' errors e, (K, K, L)."""
    return np.einsum("rkln,linp,rklp->kil", vectors.conj(), view.channels.error, vectors).real / len(vectors)


def uplink_bits(view: Scene, products: np.ndarray, vectors: np.ndarray, missed: np.ndarray | float = 0.0) -> np.ndarray:
    """Use-and-then-forget bound with the weights that the scene asks for."""
    missed = np.broadcast_to(missed, products.shape[1:])
    phones, power = len(view.gain_db), view.radio.uplink_mw
    bits = np.zeros(phones)
    for phone in range(phones):
        servers = np.flatnonzero(view.clusters[phone])
        g = products[:, phone][:, :, servers]  # (R, K, m)
        mean = g[:, phone].mean(axis=0)
        second = [power * np.einsum("rm,rn->mn", g[:, i], g[:, i].conj()) / len(g) for i in range(phones)]
        second = [matrix + power * np.diag(missed[phone, i, servers]) for i, matrix in enumerate(second)]
        noise = np.diag((np.abs(vectors[:, phone, servers]) ** 2).sum(axis=-1).mean(axis=0))
        near = [i for i in range(phones) if (view.clusters[phone] & view.clusters[i]).any()]
        weights = np.ones(len(servers), dtype=complex)
        if view.radio.weighting != "none":
            known = near if view.radio.weighting == "n-opt" else range(phones)
            weights = np.linalg.solve(sum(second[i] for i in known) + noise, mean)
        signal = power * abs(weights.conj() @ mean) ** 2
        total = (weights.conj() @ (sum(second) + noise) @ weights).real
        bits[phone] = np.log2(1 + signal / (total - signal))
    return view.radio.data_share * bits


def downlink_bits(
    view: Scene, products: np.ndarray, vectors: np.ndarray, sent_mw: np.ndarray, missed: np.ndarray | float = 0.0
) -> np.ndarray:
    """Hardening bound with mean powers `sent_mw` (K, L), each precoder scaled per access point to spend them."""
    spent = (np.abs(vectors) ** 2).sum(axis=-1).mean(axis=0)
    scale = np.sqrt(sent_mw / np.where(view.clusters, spent, 1.0))
    arriving = np.einsum("kl,rkil->rki", scale, products)  # from the precoder of k at phone i
    signal = np.abs(np.einsum("rkk->rk", arriving).mean(axis=0)) ** 2
    total = (np.abs(arriving) ** 2).mean(axis=0).sum(axis=0)
    total = total + np.einsum("kl,kil->i", scale**2, np.broadcast_to(missed, products.shape[1:]))
    return view.radio.data_share * np.log2(1 + signal / (total - signal + 1))


def simulated(view: Scene, scheme: str, sent_mw: np.ndarray, *, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Jackknife estimate over true channels and its standard error, (uplink or downlink, K) each."""
    truth, estimate = draw_with_truth(view.channels, draws, seed=seed)
    vectors = combiners(view, estimate, scheme)
    products = gathered(vectors, truth)

    def bits(kept: np.ndarray) -> np.ndarray:
        g, v = products[kept], vectors[kept]
        return np.stack([uplink_bits(view, g, v), downlink_bits(view, g, v, sent_mw)])

    batch = np.arange(draws) % 20
    left_out = np.stack([bits(batch != index) for index in range(20)])
    full = bits(batch >= 0)
    error = np.sqrt(19 / 20 * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
    return 20 * full - 19 * left_out.mean(axis=0), error
