"""Distillation: teachers, where a student asks them, and what it learns from the answers."""

from priornet.distill.faithful import Agreement, Faithfulness, FaithfulnessWarning
from priornet.distill.questions import Questions, draw_inputs
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
from priornet.distill.transfer import Drawn, TransferSet

__all__ = [
    "Agreement",
    "AgreementWarning",
    "Answers",
    "CatBoostTeacher",
    "Drawn",
    "DropoutTeacher",
    "Faithfulness",
    "FaithfulnessWarning",
    "ForestTeacher",
    "FunctionTeacher",
    "GaussianProcessTeacher",
    "ModulesTeacher",
    "PureLeavesWarning",
    "Questions",
    "RegressorsTeacher",
    "StoredTeacher",
    "Targets",
    "Teacher",
    "TeacherError",
    "TransferSet",
    "as_teacher",
    "ask",
    "ask_all",
    "draw_inputs",
    "start_as_average",
    "start_as_member",
    "start_as_members",
    "targets_for",
]
