//! LoCoMo: two people talk over months; questions refer to turns by session and number.

use std::collections::HashMap;
use std::path::Path;

use ctx_core::{Result, Role};
use serde_json::{Map, Value};

use super::conversation::{Conversation, JsonLocation, Question, entries, read_json};
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

fn file(path: &Path) -> Result<Vec<Conversation>> {
    let root = JsonLocation::of(path);
    match read_json(path)? {
        Value::Array(list) => {
            let one = |(n, value): (usize, &Value)| conversation(value, &root.down(n), n);
            list.iter().enumerate().map(one).collect()
        }
        value @ Value::Object(_) => Ok(vec![conversation(&value, &root, 0)?]),
        _ => Err(root.wrong("a conversation, or a list of them")),
    }
}

fn conversation(value: &Value, place: &JsonLocation, n: usize) -> Result<Conversation> {
    let name = value["sample_id"].as_str().map_or_else(|| n.to_string(), ToOwned::to_owned);
    let mut conversation = Conversation { name, ..Conversation::default() };
    let said = place.down("conversation");
    let sessions = value["conversation"].as_object().ok_or_else(|| said.wrong("an object"))?;
    let mut turns = HashMap::new();
    for number in session_numbers(sessions) {
        session(sessions, number, &said, &mut conversation, &mut turns)?;
    }
    let asked = place.down("qa");
    let questions = value["qa"].as_array().ok_or_else(|| asked.wrong("a list of questions"))?;
    for (n, value) in questions.iter().enumerate() {
        question(value, &asked.down(n), &turns, &mut conversation)?;
    }
    Ok(conversation)
}

/// Returns the numbers of the sessions that hold turns, in order.
fn session_numbers(sessions: &Map<String, Value>) -> Vec<u32> {
    let number = |key: &String| key.strip_prefix("session_")?.parse().ok();
    let mut numbers: Vec<u32> = sessions.keys().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

fn session(
    sessions: &Map<String, Value>,
    number: u32,
    place: &JsonLocation,
    conversation: &mut Conversation,
    turns: &mut HashMap<String, usize>,
) -> Result<()> {
    let key = format!("session_{number}");
    let place = place.down(&key);
    let said = sessions.get(&key).and_then(Value::as_array);
    let said = said.ok_or_else(|| place.wrong("a list of turns"))?;
    let day = sessions.get(&format!("{key}_date_time")).and_then(Value::as_str);
    let time = day.and_then(dates::time).unwrap_or(dates::UNKNOWN);
    for (n, turn) in said.iter().enumerate() {
        let place = place.down(n);
        let text = |key: &str| turn[key].as_str().map(ToOwned::to_owned);
        let id = text("dia_id").ok_or_else(|| place.down("dia_id").wrong("a text"))?;
        let mut content = text("text").ok_or_else(|| place.down("text").wrong("a text"))?;
        if let Some(caption) = turn["blip_caption"].as_str() {
            content.push_str(&format!(" [shares image: {caption}]"));
        }
        let at = conversation.say(key.clone(), time, Role::User, text("speaker"), content);
        turns.entry(id).or_insert(at);
    }
    Ok(())
}

fn question(
    value: &Value,
    place: &JsonLocation,
    turns: &HashMap<String, usize>,
    conversation: &mut Conversation,
) -> Result<()> {
    let text = value["question"].as_str();
    let text = text.ok_or_else(|| place.down("question").wrong("a text"))?.to_owned();
    let category = match &value["category"] {
        Value::Number(number) => {
            let known = number.as_u64().and_then(|n| CATEGORIES.get(n.checked_sub(1)? as usize));
            known.map_or_else(|| number.to_string(), |name| (*name).to_owned())
        }
        Value::String(name) => name.clone(),
        _ => "other".to_owned(),
    };
    let references: Vec<&str> = match &value["evidence"] {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        Value::String(one) => vec![one],
        _ => Vec::new(),
    };
    let mut evidence = Vec::new();
    for reference in references {
        find(reference, turns, conversation, &mut evidence);
    }
    let counts = category != ADVERSARIAL;
    conversation.ask(Question { text, category, counts, evidence, recorded: None });
    Ok(())
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
