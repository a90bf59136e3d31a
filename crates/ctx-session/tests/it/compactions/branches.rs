//! Where in the tree a compaction is in force.

use ctx_session::{Format, Transcript};

use super::house::*;

#[test]
fn a_compaction_stays_where_it_was_planned_while_the_file_grows() {
    let lines = claude_lines();
    // Planned when the file ended in the middle of an answer.
    let house = House::new(lines[..5].concat().as_bytes());
    let at = house.open().leaf().cloned().unwrap();
    assert_eq!(&*at, "a3");
    house.grow(&lines[5..7].concat());
    let id = house.store(Some(&at), &compacted("sum", &"a2".into())).unwrap();
    let expected = ["sum", "let me see", ""];
    assert_eq!(texts(&house.open(), None), expected);
    house.grow(&lines[7]);
    house.grow(&claude("u9", "user", r#"{"role":"user","content":"end"}"#));
    let grown = house.open();
    assert_eq!(texts(&grown, None), ["sum", "let me see", "", "", "end"]);
    assert_eq!(grown.leaf().unwrap().as_ref(), "u9");
    assert_eq!(grown.tips().len(), 1);
    // The answer is complete for every leaf.
    for leaf in [None, Some(&id), Some(&at)] {
        let context = grown.context(leaf).unwrap();
        let answer = context.entries.iter().find(|entry| &**entry.id() == "a2").unwrap();
        assert_eq!(answer.message().unwrap().tool_calls().count(), 2);
    }
    let replay = grown.messages_with_compactions(None).unwrap();
    let before: Vec<_> = replay
        .items
        .iter()
        .filter(|item| !item.compactions.is_empty())
        .map(|item| (item.item.entry.id().to_string(), item.compactions[0].0.clone()))
        .collect();
    assert_eq!(before, [("r1".to_owned(), id)]);
}

#[test]
fn a_compaction_applies_to_every_branch_through_its_entry() {
    let house = House::new(pi_tree().as_bytes());
    let plain = Transcript::open(&house.path).unwrap();
    let children = |transcript: &Transcript, id: &str| -> Vec<String> {
        let parent = transcript.index_of(id);
        let children = transcript.entries.iter().filter(|entry| entry.parent() == parent);
        children.map(|entry| entry.id.to_string()).collect()
    };
    let tips = |transcript: &Transcript| -> Vec<String> {
        transcript.tips().iter().map(|&t| transcript.entries[t].id.to_string()).collect()
    };
    let id = house.store(Some(&"c".into()), &compacted("sum", &"b".into())).unwrap();
    let transcript = house.open();
    assert_eq!(tips(&transcript), tips(&plain));
    assert_eq!(children(&transcript, "c"), [id.to_string()]);
    assert_eq!(children(&transcript, &id), children(&plain, "c"));
    let at = |id: &str| texts(&transcript, Some(&id.into()));
    assert_eq!(at("l"), ["sum", "two", "three", "left"]);
    assert_eq!(at("r2"), ["sum", "two", "three", "right", "right again"]);
    assert_eq!(at("o"), ["one", "other"]);
    assert_eq!(at("c"), ["one", "two", "three"]);

    // It was undone only on the leaf's branch.
    house.undo(None).unwrap();
    let transcript = house.open();
    assert_eq!(texts(&transcript, None), ["one", "two", "three", "right", "right again"]);
    assert_eq!(texts(&transcript, Some(&"l".into())), ["sum", "two", "three", "left"]);
    assert!(!transcript.compaction_list(Some(&"l".into())).unwrap()[0].undone);
    assert_eq!(transcript.compaction_list(Some(&"o".into())).unwrap(), []);
    // The copy contains only the file itself.
    let mut copy = Vec::new();
    transcript.convert(Format::PI, &mut copy).unwrap();
    assert_eq!(copy, std::fs::read(&house.path).unwrap());
    let mut left_out = transcript.convert(Format::OPENAI_CHAT, &mut copy).unwrap().left_out;
    left_out.retain(|sentence| sentence.contains("in the overlay of the file"));
    assert_eq!(left_out, ["1 compaction stored in the overlay of the file"]);
}
