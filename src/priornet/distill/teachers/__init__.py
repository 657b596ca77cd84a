"""Teachers: anything that answers M Gaussians for inputs, with adapters for what people have."""

from priornet.distill.teachers.catboost import CatBoostTeacher
from priornet.distill.teachers.choose import as_teacher
from priornet.distill.teachers.forests import ForestTeacher, PureLeavesWarning
from priornet.distill.teachers.function import FunctionTeacher
from priornet.distill.teachers.gaussian_process import GaussianProcessTeacher
from priornet.distill.teachers.protocol import (
    AgreementWarning,
    Answers,
    Teacher,
    TeacherError,
    ask,
    ask_all,
)
from priornet.distill.teachers.regressors import RegressorsTeacher
from priornet.distill.teachers.stored import StoredTeacher
from priornet.distill.teachers.torch_modules import DropoutTeacher, ModulesTeacher

__all__ = [
    "AgreementWarning",
    "Answers",
    "CatBoostTeacher",
    "DropoutTeacher",
    "ForestTeacher",
    "FunctionTeacher",
    "GaussianProcessTeacher",
    "ModulesTeacher",
    "PureLeavesWarning",
    "RegressorsTeacher",
    "StoredTeacher",
    "Teacher",
    "TeacherError",
    "as_teacher",
    "ask",
    "ask_all",
]
