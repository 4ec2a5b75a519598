"""The picture of the directory servers: who stands where, and who tells whom."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from falconmq.service.console.replication_map import BACKUPS_MOST, SITES_MOST, draw
from falconmq.service.directory.replication_servers import (
    DirectoryServer,
    DirectorySite,
    Standing,
)
from tests.directory.enterprises import guid

NOTHING, GOOD = Standing("", ""), Standing("good", "in step, change 3")


def server(name: str, role: str = "PSC", standing: Standing = GOOD) -> DirectoryServer:
    return DirectoryServer(name, role, guid(name), name == "PEC0", standing, NOTHING)


def site(name: str, primary: DirectoryServer, *backups: str) -> DirectorySite:
    standing_by = tuple(server(backup, "BSC", NOTHING) for backup in backups)
    return DirectorySite(guid(name), name, primary, standing_by)


BERLIN = site("Berlin", server("PEC0", "PEC"))
PARIS = site("Paris", server("PSC1"), "BSC11", "BSC12")


def test_primary_controllers_are_joined_and_backups_are_told() -> None:
    picture = draw([BERLIN, PARIS])
    assert picture is not None
    assert picture.summary == "2 sites and 4 directory servers"
    told = [arrow.summary for arrow in picture.arrows if len(arrow.heads) == 1]
    assert told == ["PSC1 tells BSC11", "PSC1 tells BSC12"]
    both_ways = [arrow.summary for arrow in picture.arrows if len(arrow.heads) == 2]
    assert [text.split()[0] for text in both_ways] == ["PEC0", "PSC1"]
    assert picture.bus
    # nothing stands on something else, and everything is inside
    boxes = sorted(picture.boxes, key=lambda box: (box.x, box.y))
    for one, other in pairwise(boxes):
        assert one.x != other.x or one.y + one.height <= other.y
    for box in boxes:
        assert box.x + box.width <= picture.width
        assert box.y + box.height <= picture.height
    for above, below in pairwise(picture.grounds):
        assert above.y + above.height < below.y


def test_one_site_alone_has_nobody_to_tell() -> None:
    picture = draw([BERLIN])
    assert picture is not None
    assert not picture.bus
    assert not picture.arrows


def test_looks_say_the_worst_and_names_that_are_long_are_cut() -> None:
    late = replace(server("P" * 40, standing=Standing("warn", "3 behind")))
    silent = replace(late, sending=Standing("bad", "silent"), is_here=False)
    picture = draw([BERLIN, site("Paris", late), site("Rome", silent), site("Oslo", server(""))])
    assert picture is not None
    looks = {box.server.name or "nobody": box.look for box in picture.boxes}
    assert looks["PEC0"] == "here"
    assert [box.look for box in picture.boxes][1:3] == ["warn", "bad"]
    assert picture.boxes[1].short.endswith("…")
    assert picture.boxes[2].summary == f"PSC {'P' * 40}: 3 behind, silent"
    assert picture.boxes[3].short == "no server"
    assert len(picture.arrows) == 3  # nobody tells a site without a server


def test_too_much_is_not_drawn() -> None:
    many = site("Paris", server("PSC1"), *(f"BSC{number}" for number in range(BACKUPS_MOST + 2)))
    picture = draw([many])
    assert picture is not None
    assert picture.grounds[0].more == 2
    assert len(picture.boxes) == 1 + BACKUPS_MOST
    assert draw([]) is None
    assert draw([PARIS] * (SITES_MOST + 1)) is None
