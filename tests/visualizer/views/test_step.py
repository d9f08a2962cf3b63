"""What Step through says beside its pictures."""

import pytest

from tests.test_app import assert_healthy, open_app


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ({"architecture": "encoder"}, "##### The most likely tokens at “h” (position 0)"),
        ({"architecture": "decoder"}, "##### The next token after “h” (position 0)"),
        ({"architecture": "encoder-decoder"}, "##### The next token after “\\<s\\>” (position 0)"),
        ({"weights": "trained", "task": "reverse"}, "##### The next token after “\\<sos\\>” (position 0)"),
        ({"weights": "trained", "task": "match_brackets", "text": "()"}, "##### The answer at “\\(” (position 0)"),
    ],
    ids=["encoder", "decoder", "encoder-decoder", "decoder that learned", "encoder that learned"],
)
def test_probabilities_say_of_what_they_are(link, said):
    app = open_app(**{"stage": "probabilities", "text": "h e", "query": "0", **link})
    assert_healthy(app)
    assert said in [each.value for each in app.markdown if each.value.startswith("##### The")]
