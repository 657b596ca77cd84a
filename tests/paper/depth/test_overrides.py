"""Settings from a command line: read as the kind they had, or refused."""

import pytest

from priornet_paper.depth.config import Config
from priornet_paper.depth.overrides import in_options, with_changes


def test_settings_from_a_command_line():
    given = ["epochs=3", "learning_rate=1", "norm=batch", "gammas=[0, 0.1]", "student_epochs=9"]
    config = with_changes(Config(), given, "4,5")
    assert config.epochs == 3
    assert config.learning_rate == 1.0
    assert isinstance(config.learning_rate, float)
    assert config.norm == "batch"
    assert config.gammas == (0, 0.1)
    assert config.student_epochs == 9
    assert config.seeds == (4, 5)


@pytest.mark.parametrize(
    ("given", "seeds", "message"),
    [
        (["epoch=3"], "", '"epoch=3" is not NAME=VALUE with one of these names: average, batch'),
        (["epochs"], "", '"epochs" is not NAME=VALUE'),
        (["epochs=many"], "", '`epochs` cannot be "many": it is 50 in the preset'),
        (["epochs=1.5"], "", '`epochs` cannot be "1.5"'),
        (["proxy=1"], "", '`proxy` cannot be "1": it is False in the preset'),
        ([], "0;1", 'seeds must be numbers such as 0,1; got "0;1"'),
    ],
)
def test_settings_that_are_none(given, seeds, message):
    with pytest.raises(ValueError, match=message):
        with_changes(Config(), given, seeds)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ('with `missing="skip"` such frames', "with `--missing skip` such frames"),
        ("Name the list with `split`.", "Name the list with `--split`."),
        ("`n_images` stays, for it is given with --set", None),
    ],
)
def test_messages_name_the_options_of_the_command_line(message, shown):
    assert in_options(message) == (shown or message)
