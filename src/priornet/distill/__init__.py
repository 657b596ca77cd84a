"""Distillation: teachers, transfer sets, and students that learn the teachers' answers."""

from priornet.distill.faithfulness import Agreement, Faithfulness, FaithfulnessWarning, compare
from priornet.distill.problem import DistillationProblem
from priornet.distill.student import (
    StudentSettings,
    start_as_average,
    start_as_member,
    start_as_members,
    train_student,
)
from priornet.distill.targets import Targets, targets_for
from priornet.distill.teacher import (
    AgreementWarning,
    Answers,
    FunctionTeacher,
    Teacher,
    TeacherError,
    ask,
    ask_all,
)
from priornet.distill.teachers import (
    CatBoostTeacher,
    DropoutTeacher,
    ForestTeacher,
    GaussianProcessTeacher,
    ModulesTeacher,
    PureLeavesWarning,
    RegressorsTeacher,
    StoredTeacher,
    as_teacher,
)
from priornet.distill.transfer import Drawn, Questions, TransferSet, draw_inputs

__all__ = [
    "Agreement",
    "AgreementWarning",
    "Answers",
    "CatBoostTeacher",
    "DistillationProblem",
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
    "StudentSettings",
    "Targets",
    "Teacher",
    "TeacherError",
    "TransferSet",
    "as_teacher",
    "ask",
    "ask_all",
    "compare",
    "draw_inputs",
    "start_as_average",
    "start_as_member",
    "start_as_members",
    "targets_for",
    "train_student",
]
