"""tmp"""
from dpviz.data.points import PointCounts
from dpviz.errors import BudgetError, DomainError, DpvizError, InputError, SettingError
from dpviz.privacy.budget import ApproxBudget, PureBudget, Receipt, ZcdpBudget
from dpviz.privacy.entropy import Entropy
from dpviz.privacy.noise import discrete_gaussian, discrete_laplace
from dpviz.space.domain import Domain
from dpviz.mechanisms import *
from dpviz.release.release import Release
FLOW_MECHANISMS = {}
