//! `cargo xtask label-facts`: how many of the facts that memory learns by rules are junk.
//!
//! The facts of recorded sessions, and those of the labelled conversations of `ctx eval recall`. The
//! labels in `xtask/labels` are manual: a fact is right if it may be of use months later.

#![expect(clippy::print_stdout, reason = "the output of the task")]

use std::path::Path;

use anyhow::Result;
use ctx_core::{Counter, Timestamp};
use ctx_eval::recall::{DatasetFormat, load};
use ctx_memory::archive::SegmentMaker;
use ctx_memory::facts::{FactStore, Scope, SourceMessage, find_facts};
use ctx_search::Segment;
use ctx_session::Transcript;

use crate::labels::{Label, compare};
use crate::transcripts;

/// Prints the share of junk and how many of the facts labelled as right are found; with `print`,
/// also the facts that have no label.
pub(crate) fn run(root: &Path, data: &Path, print: bool) -> Result<()> {
    let (mut junk, mut labelled) = (0, 0);
    for (of, facts) in [("sessions", of_sessions(data)?), ("chats", of_chats(data)?)] {
        let file = root.join(format!("xtask/labels/facts-of-{of}.jsonl"));
        let found = compare(&file, &facts, print)?;
        let judged = found.right + found.wrong;
        println!("{of}: {} of {judged} labelled facts are junk", found.wrong);
        let (right, wanted, none) = (found.right, found.wanted, found.unlabelled);
        println!("{of}: {right} of {wanted} wanted facts are found, {none} facts have no label");
        junk += found.wrong;
        labelled += judged;
    }
    println!("junk: {:.1} %", 100.0 * junk as f64 / labelled.max(1) as f64);
    Ok(())
}

fn of_sessions(data: &Path) -> Result<Vec<Label>> {
    let mut out = Vec::new();
    for path in transcripts(data)? {
        let name = path.strip_prefix(data)?.to_string_lossy();
        let maker = SegmentMaker::new("label", &*name, Counter::default());
        let messages = Transcript::open(&path)?.all_messages().into_iter();
        let segments = messages.filter_map(|entry| maker.of_entry(&entry, Timestamp(0)).ok()?);
        out.extend(learned(&name, &segments.collect::<Vec<_>>())?);
    }
    Ok(out)
}

fn of_chats(data: &Path) -> Result<Vec<Label>> {
    let mut out = Vec::new();
    for form in [DatasetFormat::Locomo, DatasetFormat::Beam] {
        for chat in load(form, &data.join(form.name()))? {
            out.extend(learned(&format!("{}/{}", form.name(), chat.name), &chat.turns)?);
        }
    }
    Ok(out)
}

/// Returns the facts that a memory learns from the messages of a session.
fn learned(session: &str, segments: &[Segment]) -> Result<Vec<Label>> {
    let said: Vec<_> = segments.iter().map(SourceMessage::of).collect();
    let mut store = FactStore::in_memory(Scope::Session);
    store.learn(find_facts(&said))?;
    Ok(store.facts().map(|fact| Label::new(session, fact.kind.name(), &fact.content)).collect())
}
