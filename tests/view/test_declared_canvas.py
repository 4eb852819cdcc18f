"""Maps on which a domain is declared: what was drawn once is not on later maps of the same bounds."""

from dpviz.view.canvas import ground_in
from dpviz.view.declared_canvas import DeclaredBox, declared_scene

BOX = DeclaredBox(name="Los Angeles", bounds=(-119.0, 33.6, -117.6, 34.9))


def test_the_outline_of_a_box_is_drawn_once_however_often_the_map_is_made():
    first, again = (declared_scene(None, None, [BOX], unit="records", dark=False, height=300) for _ in range(2))
    assert len(first.ground["borders"]) == len(again.ground["borders"]) == len(ground_in(first.bounds)["borders"]) + 1
