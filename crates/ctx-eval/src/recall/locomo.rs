//! LoCoMo: two people talk over months; questions refer to turns by session and number.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use ctx_core::{Result, Role};
use serde::Deserialize;
use serde_json::Value;

use super::conversation::{Conversation, Question, entries, parse, read_json};
use super::dates;

/// Categories by number.
const CATEGORIES: [&str; 5] = ["multi-hop", "temporal", "open-domain", "single-hop", "adversarial"];

/// Questions of this category have no answer, and do not count in the sum.
const ADVERSARIAL: &str = "adversarial";

pub(super) fn load(path: &Path) -> Result<Vec<Conversation>> {
    if !path.is_dir() {
        return file(path);
    }
    let mut found = Vec::new();
    for path in entries(path)? {
        if path.extension().is_some_and(|extension| extension == "json") {
            found.extend(file(&path)?);
        }
    }
    Ok(found)
}

#[derive(Deserialize)]
struct Sample {
    sample_id: Option<String>,
    /// The sessions by their keys, and their dates.
    conversation: BTreeMap<String, Value>,
    qa: Vec<LabelledQuestion>,
}

#[derive(Deserialize)]
struct Turn {
    dia_id: String,
    text: String,
    speaker: Option<String>,
    blip_caption: Option<String>,
}

#[derive(Deserialize)]
struct LabelledQuestion {
    question: String,
    #[serde(default)]
    category: Value,
    #[serde(default)]
    evidence: Value,
}

fn file(path: &Path) -> Result<Vec<Conversation>> {
    let samples = match read_json(path)? {
        Value::Array(list) => parse(path, Value::Array(list))?,
        one => vec![parse(path, one)?],
    };
    samples.into_iter().enumerate().map(|(n, sample)| conversation(path, sample, n)).collect()
}

fn conversation(path: &Path, sample: Sample, n: usize) -> Result<Conversation> {
    let name = sample.sample_id.unwrap_or_else(|| n.to_string());
    let mut conversation = Conversation { name, ..Conversation::default() };
    let number = |key: &String| key.strip_prefix("session_")?.parse().ok();
    let mut numbers: Vec<u32> = sample.conversation.keys().filter_map(number).collect();
    numbers.sort_unstable();
    let mut turns = HashMap::new();
    for number in numbers {
        let key = format!("session_{number}");
        let day = sample.conversation.get(&format!("{key}_date_time")).and_then(Value::as_str);
        let time = day.and_then(dates::time).unwrap_or(dates::UNKNOWN);
        let said: Vec<Turn> = parse(path, &sample.conversation[&key])
            .map_err(|error| error.with("conversation", &conversation.name).with("in", &key))?;
        for Turn { dia_id, mut text, speaker, blip_caption } in said {
            if let Some(caption) = blip_caption {
                text.push_str(&format!(" [shares image: {caption}]"));
            }
            let at = conversation.say(key.clone(), time, Role::User, speaker, text);
            turns.entry(dia_id).or_insert(at);
        }
    }
    for labelled in sample.qa {
        question(labelled, &turns, &mut conversation);
    }
    Ok(conversation)
}

fn question(
    labelled: LabelledQuestion,
    turns: &HashMap<String, usize>,
    conversation: &mut Conversation,
) {
    let category = match &labelled.category {
        Value::Number(number) => {
            let known = number.as_u64().and_then(|n| CATEGORIES.get(n.checked_sub(1)? as usize));
            known.map_or_else(|| number.to_string(), |name| (*name).to_owned())
        }
        Value::String(name) => name.clone(),
        _ => "other".to_owned(),
    };
    let references: Vec<&str> = match &labelled.evidence {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        Value::String(one) => vec![one],
        _ => Vec::new(),
    };
    let mut evidence = Vec::new();
    for reference in references {
        find(reference, turns, conversation, &mut evidence);
    }
    let (text, counts) = (labelled.question, category != ADVERSARIAL);
    conversation.ask(Question { text, category, counts, evidence, recorded: None });
}

/// Returns the turns of a reference. It may name several turns (`D8:6; D9:17`), or be written
/// differently from the turn's id (`D:11:26`, `D30:05`).
fn find(
    reference: &str,
    turns: &HashMap<String, usize>,
    conversation: &mut Conversation,
    evidence: &mut Vec<usize>,
) {
    if let Some(&turn) = turns.get(reference) {
        evidence.push(turn);
        return;
    }
    let parts = reference.split(|c: char| c.is_whitespace() || matches!(c, ';' | ','));
    for part in parts.filter(|part| !part.is_empty()) {
        let turn = turns.get(part).or_else(|| turns.get(&plain(part)?));
        match turn {
            Some(&turn) => {
                conversation.repaired += 1;
                evidence.push(turn);
            }
            None => conversation.dropped += 1,
        }
    }
}

/// `D:11:26` and `D11:026` as `D11:26`.
fn plain(reference: &str) -> Option<String> {
    let numbers = reference.strip_prefix('D')?.trim_start_matches(':');
    let (session, turn) = numbers.split_once(':')?;
    let (session, turn): (u32, u32) = (session.parse().ok()?, turn.parse().ok()?);
    Some(format!("D{session}:{turn}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_with_a_clear_meaning_are_repaired() {
        let ids = ["D8:6", "D9:17", "D11:26", "D30:5", "own id"];
        let turns = ids.iter().enumerate().map(|(n, id)| ((*id).to_owned(), n)).collect();
        let mut conversation = Conversation::default();
        let mut evidence = Vec::new();
        for reference in ["D8:6; D9:17", "D:11:26", "D30:05", "own id", "D", "D4:36", ""] {
            find(reference, &turns, &mut conversation, &mut evidence);
        }
        assert_eq!(evidence, [0, 1, 2, 3, 4]);
        assert_eq!((conversation.repaired, conversation.dropped), (4, 2));
    }
}
