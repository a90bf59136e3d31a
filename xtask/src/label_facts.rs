//! `cargo xtask label-facts`: the share of junk among the facts of memory, labelled by a person.
//!
//! The facts of recorded sessions are extracted by rules, and the 200 whose hashes are smallest are
//! the sample: chosen at random, and the same as long as their texts are. `xtask/labels/facts.jsonl`
//! has a label for each, `useful` or `junk`, and no text, as licences keep it out of this repository.

#![expect(clippy::print_stdout, reason = "the output of the task")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use ctx_core::{ContentHash, Counter, Message, Role, Timestamp};
use ctx_eval::recall::{DatasetFormat, load};
use ctx_memory::archive::SegmentMaker;
use ctx_memory::facts::{Fact, FactStore, Rules, Scope, SourceMessage};
use ctx_search::Segment;
use ctx_session::Transcript;
use serde::{Deserialize, Serialize};

use crate::transcripts;

/// The number of facts in the sample.
const SAMPLE: usize = 200;

/// A line of the file of labels. `text` is only printed.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Label {
    session: String,
    entry: String,
    hash: String,
    label: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
}

/// Prints the share of junk in the sample; with `--print`, the facts that have no label.
pub(crate) fn run(root: &Path, data: &Path, prints: bool) -> Result<()> {
    let file = root.join("xtask/labels/facts.jsonl");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let labels: Vec<Label> =
        text.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("facts.jsonl")?;
    let labels: HashMap<&str, &str> = labels.iter().map(|one| (&*one.hash, &*one.label)).collect();
    let mut facts = facts(data)?;
    let all = facts.len();
    facts.sort_by(|a, b| a.hash.cmp(&b.hash));
    facts.truncate(SAMPLE);
    let (known, unknown): (Vec<Label>, Vec<Label>) =
        facts.into_iter().partition(|one| labels.contains_key(&*one.hash));
    let junk = known.iter().filter(|one| labels.get(&*one.hash) == Some(&"junk")).count();
    let share = 100.0 * junk as f64 / known.len().max(1) as f64;
    println!("{all} facts, {} of {SAMPLE} labelled: {junk} junk ({share:.1} %)", known.len());
    println!("{} not labelled", unknown.len());
    for one in unknown.iter().filter(|_| prints) {
        println!("{}", serde_json::to_string(one)?);
    }
    Ok(())
}

/// Extracts the facts of all sessions and labelled conversations in a folder.
fn facts(data: &Path) -> Result<Vec<Label>> {
    let mut out = Vec::new();
    for path in transcripts(data)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let maker = SegmentMaker::new("label", &*name, Counter::default());
        let transcript = Transcript::open(&path)?;
        let segments = transcript.all_messages().into_iter();
        let segments = segments.filter_map(|entry| maker.of_entry(&entry, Timestamp(0)).ok()?);
        out.extend(learned(&name, &segments.collect::<Vec<_>>())?);
    }
    for form in [DatasetFormat::Locomo, DatasetFormat::Beam] {
        for conversation in load(form, &data.join(form.name()))? {
            let name = format!("{}/{}", form.name(), conversation.name);
            out.extend(learned(&name, &conversation.turns)?);
        }
    }
    Ok(out)
}

/// Returns the facts that a memory learns from the messages of a session.
fn learned(session: &str, segments: &[Segment]) -> Result<Vec<Label>> {
    let places: Vec<String> = (0..segments.len()).map(|at| at.to_string()).collect();
    let said = segments.iter().zip(&places).map(|(one, place)| SourceMessage::of(one, place));
    let mut store = FactStore::in_memory(Scope::Session);
    store.learn(Rules::default().find(&said.collect::<Vec<_>>()))?;
    let label = |fact: &Fact| Label {
        session: session.to_owned(),
        entry: fact.source_entry_ids.concat(),
        hash: format!("{:?}", ContentHash::of(&Message::text(Role::User, &*fact.content))),
        label: String::new(),
        text: format!("[{}] {}", fact.kind.name(), fact.content),
    };
    Ok(store.facts().map(label).collect())
}
