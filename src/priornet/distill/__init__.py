"""Distillation: teachers, where a student asks them, and what it learns from the answers."""

from priornet.distill.start import start_as_average, start_as_member, start_as_members
from priornet.distill.targets import Targets, targets_for
from priornet.distill.teachers import (
    AgreementWarning,
    Answers,
    CatBoostTeacher,
    DropoutTeacher,
    ForestTeacher,
    FunctionTeacher,
    GaussianProcessTeacher,
    ModulesTeacher,
    PureLeavesWarning,
    RegressorsTeacher,
    StoredTeacher,
    Teacher,
    TeacherError,
    as_teacher,
    ask,
    ask_all,
)
from priornet.distill.transfer import TransferSet

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
    "Targets",
    "Teacher",
    "TeacherError",
    "TransferSet",
    "as_teacher",
    "ask",
    "ask_all",
    "start_as_average",
    "start_as_member",
    "start_as_members",
    "targets_for",
]
