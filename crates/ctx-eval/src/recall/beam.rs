//! BEAM: a person and an assistant work on something; questions refer to messages by number.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result, Role, Timestamp};
use serde_json::Value;

use super::conversation::{Conversation, JsonLocation, Question, entries, read_json};
use super::dates;

const CHAT: &str = "chat.json";
const QUESTIONS: &str = "probing_questions.json";

pub(super) fn load(path: &Path) -> Result<Vec<Conversation>> {
    let folders = if path.join(CHAT).is_file() { vec![path.to_owned()] } else { within(path)? };
    folders.iter().map(|folder| conversation(folder)).collect()
}

/// Returns the folders in `path` that contain a conversation, sorted by number.
fn within(path: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = entries(path)?;
    folders.retain(|folder| folder.join(CHAT).is_file());
    if folders.is_empty() {
        return Err(Error::new(
            ErrorKind::NotFound,
            "the folder contains no labelled conversation",
        )
        .with("path", path.display())
        .hint(format!("a conversation is a folder with {CHAT} and {QUESTIONS}")));
    }
    folders.sort_by_cached_key(|folder| {
        let name = name(folder);
        (name.parse::<u64>().unwrap_or(u64::MAX), name)
    });
    Ok(folders)
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn conversation(folder: &Path) -> Result<Conversation> {
    let mut conversation = Conversation { name: name(folder), ..Conversation::default() };
    let path = folder.join(CHAT);
    let root = JsonLocation::of(&path);
    let chat = read_json(&path)?;
    let batches = chat.as_array().ok_or_else(|| root.wrong("a list of batches"))?;
    let mut turns = HashMap::new();
    for (n, batch) in batches.iter().enumerate() {
        let place = root.down(n).down("turns");
        let groups = batch["turns"].as_array().ok_or_else(|| place.wrong("a list of groups"))?;
        let mut time = anchor(batch).unwrap_or(dates::UNKNOWN);
        for (g, group) in groups.iter().enumerate() {
            let place = place.down(g);
            let group = group.as_array().ok_or_else(|| place.wrong("a list of messages"))?;
            for (m, message) in group.iter().enumerate() {
                let place = place.down(m);
                let text = message["content"].as_str();
                let text = text.ok_or_else(|| place.down("content").wrong("a text"))?;
                let role = message["role"].as_str();
                let role = role.ok_or_else(|| place.down("role").wrong("a text"))?;
                let id = message["id"].as_u64();
                let id = id.ok_or_else(|| place.down("id").wrong("a number"))?;
                time = anchor(message).unwrap_or(time);
                let session = format!("batch-{n}");
                let at =
                    conversation.say(session, time, Role::from_name(role), None, text.to_owned());
                turns.entry(id).or_insert(at);
            }
        }
    }
    questions(&folder.join(QUESTIONS), &turns, &mut conversation)?;
    Ok(conversation)
}

/// Returns the day of a message, if it is given.
fn anchor(value: &Value) -> Option<Timestamp> {
    dates::time(value["time_anchor"].as_str()?)
}

fn questions(
    path: &Path,
    turns: &HashMap<u64, usize>,
    conversation: &mut Conversation,
) -> Result<()> {
    let root = JsonLocation::of(path);
    let all = read_json(path)?;
    let all = all.as_object().ok_or_else(|| root.wrong("lists of questions by category"))?;
    for (category, questions) in all {
        let place = root.down(category);
        let questions = questions.as_array().ok_or_else(|| place.wrong("a list of questions"))?;
        for (n, question) in questions.iter().enumerate() {
            let text = question["question"].as_str();
            let text = text.ok_or_else(|| place.down(n).down("question").wrong("a text"))?;
            let mut ids = Vec::new();
            numbers(&question["source_chat_ids"], &mut ids);
            let found = ids.iter().filter_map(|id| turns.get(id).copied());
            let evidence: Vec<usize> = found.collect();
            conversation.dropped += ids.len() - evidence.len();
            conversation.ask(Question {
                text: text.to_owned(),
                category: category.clone(),
                counts: true,
                evidence,
                recorded: None,
            });
        }
    }
    Ok(())
}

/// Collects all numbers in a value: messages are named in lists, or in lists by purpose.
fn numbers(value: &Value, found: &mut Vec<u64>) {
    match value {
        Value::Number(number) => found.extend(number.as_u64()),
        Value::Array(list) => list.iter().for_each(|value| numbers(value, found)),
        Value::Object(map) => map.values().for_each(|value| numbers(value, found)),
        _ => {}
    }
}
