//! The README shows what the program prints.

use std::path::Path;

use crate::support::Room;

#[test]
fn the_replay_in_the_readme_is_what_one_sees() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README is there");
    let shown = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let sample = root.join("examples/fix-flaky-test.jsonl");
    let sample = sample.to_str().expect("the path is text");
    let ran = Room::new().ctx(&["replay", sample, "--window", "32000"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // The first line is the path, which the README has from its own place.
    let lines = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&ran.stdout), lines(shown.expect("the README shows a replay")));
}
