"""Latent-variable models with exact posteriors. Tokens are independent once the latent variable is known."""

from boundcalc.lab.latent.models.base import LatentModel as LatentModel
from boundcalc.lab.latent.models.counts import BetaBernoulli as BetaBernoulli
from boundcalc.lab.latent.models.counts import DirichletCategorical as DirichletCategorical
from boundcalc.lab.latent.models.gaussian import GaussianLinear as GaussianLinear
from boundcalc.lab.latent.models.gaussian import GaussianMean as GaussianMean
from boundcalc.lab.latent.models.mixture import CategoricalMixture as CategoricalMixture
from boundcalc.lab.latent.models.mixture import GaussianMixture as GaussianMixture

MODELS: dict[str, type[LatentModel]] = {
    kind.name: kind
    for kind in (BetaBernoulli, DirichletCategorical, GaussianMean, GaussianLinear, CategoricalMixture, GaussianMixture)
}
"""Every model by name."""
