"""Parameters of parts that have a default, such as ``feature_map__n_bases``."""

from __future__ import annotations

from typing import Any, Self


class DefaultParts:
    """Mixin for estimators with a parameter None that stands for an estimator.

    Scikit-learn's ``set_params(part__name=value)`` needs a part to set the value on. Here, a part
    that is None is replaced by its default first, so that ``GridSearchCV`` over
    ``feature_map__n_bases`` works with the default map, too.
    """

    def _default_part(self, name: str) -> Any:
        """The estimator that None stands for in the parameter `name`, or None."""
        return None

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of parts (``part__name``), as in scikit-learn.

        Parameters
        ----------
        **params : dict
            Parameters by name. Those of a default part create that part first.

        Returns
        -------
        self
            The estimator.
        """
        params_now = self.get_params(deep=False)  # type: ignore[attr-defined]
        for name in sorted({key.partition("__")[0] for key in params if "__" in key}):
            if params_now.get(name, ...) is None and name not in params:
                default = self._default_part(name)
                if default is not None:
                    setattr(self, name, default)
        return super().set_params(**params)  # type: ignore[misc]
