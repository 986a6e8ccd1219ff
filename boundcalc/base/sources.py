"""Where statements come from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A paper in the version that was read, where it has versions, or this library."""

    key: str
    authors: str
    title: str
    year: int
    venue: str
    eprint: str = ""
    version: str = ""

    @property
    def short(self) -> str:
        """As a table cites it."""
        return "this library" if self.key == "boundcalc" else f"{self.authors.split(',')[0].split()[-1]} {self.year}"

    def __str__(self) -> str:
        where = f"{self.venue}, arXiv:{self.eprint}{self.version}" if self.eprint else self.venue
        return f"{self.authors} ({self.year}). {self.title}. {where}."

    @property
    def bibtex(self) -> str:
        """A BibTeX entry."""
        if self.key == "boundcalc":
            return _own_entry(self)
        kind, where = self._entry()
        fields = {"author": self.authors.replace(", ", " and "), "title": f"{{{self.title}}}", "year": str(self.year)}
        fields |= where
        if self.eprint:
            fields |= {"eprint": self.eprint, "archivePrefix": "arXiv"}
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
        return f"@{kind}{{{self.key},\n{lines}\n}}"

    def _entry(self) -> tuple[str, dict[str, str]]:
        """Its type in BibTeX, and where it appeared: in a volume of a journal, at a conference, or elsewhere."""
        name, _, volume = self.venue.rpartition(" ")
        if volume.isdigit():
            return "article", {"journal": _FULL.get(name, name), "volume": volume}
        if self.venue in _FULL:
            return "inproceedings", {"booktitle": _FULL[self.venue]}
        return "misc", {"howpublished": f"arXiv:{self.eprint}" if self.eprint else self.venue}


def _own_entry(source: Source) -> str:
    """This library's: its version."""
    from boundcalc import __version__

    fields = {"author": "{boundcalc authors}", "title": "{boundcalc}", "year": str(source.year)}
    fields["note"] = f"Version {__version__}"
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@misc{{{source.key},\n{lines}\n}}"


_FULL = {
    "JMLR": "Journal of Machine Learning Research",
    "ICML": "International Conference on Machine Learning (ICML)",
    "NeurIPS": "Advances in Neural Information Processing Systems (NeurIPS)",
    "AISTATS": "International Conference on Artificial Intelligence and Statistics (AISTATS)",
}
"""Venues that are cited by their initials."""

HERE = Source("boundcalc", "boundcalc authors", "boundcalc", 2026, "explicit version proved in docs/theory.md")
ZHANG2002 = Source(
    "zhang2002", "Tong Zhang", "Covering number bounds of certain regularized linear function classes", 2002, "JMLR 2"
)
EDELMAN2022 = Source(
    "edelman2022",
    "Benjamin L. Edelman, Surbhi Goel, Sham Kakade, Cyril Zhang",
    "Inductive Biases and Variable Creation in Self-Attention Mechanisms",
    2022,
    "ICML",
    "2110.10090",
    "v2",
)
ZHANG2022 = Source(
    "zhang2022",
    "Yufeng Zhang, Boyi Liu, Qi Cai, Lingxiao Wang, Zhaoran Wang",
    "An Analysis of Attention via the Lens of Exchangeability and Latent Variable Models",
    2022,
    "preprint",
    "2212.14852",
)
TRAUGER2024 = Source(
    "trauger2024",
    "Jacob Trauger, Ambuj Tewari",
    "Sequence Length Independent Norm-Based Generalization Bounds for Transformers",
    2024,
    "AISTATS",
    "2310.13088",
)
TRUONG2024 = Source(
    "truong2024",
    "Lan V. Truong",
    "On Rank-Dependent Generalisation Error Bounds for Transformers",
    2024,
    "preprint",
    "2410.11500",
)
SAKAI2026 = Source(
    "sakai2026",
    "Mana Sakai, Masaaki Imaizumi",
    "Spectrum-Adaptive Generalization Bounds for Trained Deep Transformers",
    2026,
    "preprint",
    "2605.07297",
    "v1",
)
BARTLETT2017 = Source(
    "bartlett2017",
    "Peter L. Bartlett, Dylan J. Foster, Matus Telgarsky",
    "Spectrally-normalized margin bounds for neural networks",
    2017,
    "NeurIPS",
    "1706.08498",
    "v2",
)
KOLTCHINSKII2002 = Source(
    "koltchinskii2002",
    "Vladimir Koltchinskii, Dmitry Panchenko",
    "Empirical margin distributions and bounding the generalization error of combined classifiers",
    2002,
    "Annals of Statistics 30",
)
LANGFORD2005 = Source(
    "langford2005", "John Langford", "Tutorial on practical prediction theory for classification", 2005, "JMLR 6"
)
SMALE2007 = Source(
    "smale2007",
    "Steve Smale, Ding-Xuan Zhou",
    "Learning theory estimates via integral operators and their approximations",
    2007,
    "Constructive Approximation 26",
)
PINELIS1994 = Source(
    "pinelis1994",
    "Iosif Pinelis",
    "Optimum bounds for the distributions of martingales in Banach spaces",
    1994,
    "Annals of Probability 22",
)
DIACONIS1980 = Source(
    "diaconis1980", "Persi Diaconis, David Freedman", "Finite exchangeable sequences", 1980, "Annals of Probability 8"
)
PACCAGNAN2023 = Source(
    "paccagnan2023",
    "Dario Paccagnan, Marco C. Campi, Simone Garatti",
    "The Pick-to-Learn algorithm: empowering compression for tight generalization bounds and improved "
    "post-training performance",
    2023,
    "NeurIPS",
)

_BY_KEY = {value.key: value for value in list(globals().values()) if isinstance(value, Source)}


def source(key: str) -> Source:
    """The source that pages cite by a key."""
    return _BY_KEY[key]
