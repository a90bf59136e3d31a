//! The list of a history that goes out.

use std::borrow::Cow;

use ctx_core::{Message, Role};

use super::peek::peek;
use super::rewrite::{self, Names, patched};
use super::{Out, Protocol, Request, join, system};
use crate::json::{Fresh, Object, array, elements, quote, string};

/// One element of the list.
#[derive(Clone, Debug)]
pub(super) struct Element<'a> {
    pub(super) json: Cow<'a, str>,
    /// The unit that it is, as it came.
    pub(super) told: Option<usize>,
}

impl Element<'_> {
    pub(super) fn written(json: String) -> Self {
        Self { json: Cow::Owned(json), told: None }
    }

    pub(super) fn role(&self) -> Option<Cow<'_, str>> {
        let [role] = peek(&self.json, ["role"]);
        role
    }

    /// Whether it came right after that one.
    pub(super) fn follows(&self, before: &Self) -> bool {
        matches!((before.told, self.told), (Some(before), Some(own)) if own == before + 1)
    }
}

/// Writes the list, with an addition to the system prompt where that is part of it.
pub(super) fn write(request: &Request<'_>, out: &[Out<'_>], addition: Option<&str>) -> String {
    let mut all: Vec<Element<'_>> = Vec::with_capacity(out.len());
    let mut late = Late::default();
    let names = Names::new();
    for out in out {
        match *out {
            Out::Told(n) => {
                let Some(unit) = request.units.get(n) else { continue };
                let json = match request.is_list {
                    true => Cow::Borrowed(unit.raw),
                    false => Cow::Owned(as_message(unit.raw)),
                };
                let element = Element { json, told: Some(n) };
                late.before(&element, &mut all);
                all.push(element);
            }
            Out::Written { message, of } => {
                let of = of.and_then(|n| request.units.get(n)).filter(|_| request.is_list);
                let written = rewrite::write(request, &names, message, of);
                for json in written {
                    let element = Element::written(json);
                    late.before(&element, &mut all);
                    match late.takes(request.protocol, message, &element) {
                        true => late.pictures.push(element),
                        false => all.push(element),
                    }
                }
            }
        }
    }
    late.end(&mut all);
    let mut all = match request.protocol {
        Protocol::Messages | Protocol::Gemini => join::fit(request.protocol, all),
        Protocol::Chat | Protocol::Responses => all,
    };
    if let Some(addition) = addition {
        add_to_system(&mut all, addition);
    }
    array(all.iter().map(|element| &element.json))
}

/// A history that is no list, as the message that it stands for.
fn as_message(raw: &str) -> String {
    match raw.starts_with('"') {
        true => Fresh::new().text("role", "user").raw("content", raw).end(),
        false => raw.to_owned(),
    }
}

/// Pictures that tools gave back, which OpenAI's chat takes from the user alone: they are shown
/// after the last of the results, as nothing may stand between those.
#[derive(Default)]
struct Late<'a> {
    pictures: Vec<Element<'a>>,
}

impl<'a> Late<'a> {
    fn takes(&self, protocol: Protocol, message: &Message, element: &Element<'_>) -> bool {
        protocol == Protocol::Chat
            && message.role == Role::ToolResult
            && element.role().as_deref() == Some("user")
    }

    fn before(&mut self, element: &Element<'_>, all: &mut Vec<Element<'a>>) {
        if !self.pictures.is_empty() && element.role().as_deref() == Some("assistant") {
            all.append(&mut self.pictures);
        }
    }

    fn end(mut self, all: &mut Vec<Element<'a>>) {
        all.append(&mut self.pictures);
    }
}

/// Adds to the last of the system's messages at the beginning, or puts one there.
fn add_to_system(all: &mut Vec<Element<'_>>, addition: &str) {
    let is_system = |element: &&mut Element<'_>| {
        matches!(element.role().as_deref(), Some("system" | "developer"))
    };
    match all.iter_mut().take_while(is_system).last() {
        Some(last) => last.json = Cow::Owned(with_text(&last.json, addition)),
        None => {
            let json = Fresh::new().text("role", "system").text("content", addition).end();
            all.insert(0, Element::written(json));
        }
    }
}

fn with_text(message: &str, addition: &str) -> String {
    let Ok(object) = Object::parse(message) else { return message.to_owned() };
    let content = object.get("content");
    let text = content.map_or(Some(Cow::Borrowed("")), string);
    let content = match (text, content.and_then(elements)) {
        (Some(text), _) => quote(&system::joined(&text, addition)),
        (None, Some(parts)) => {
            let more = Fresh::new().text("type", "text").text("text", addition).end();
            array(parts.iter().map(|raw| raw.get()).chain([more.as_str()]))
        }
        (None, None) => return message.to_owned(),
    };
    patched(&object, &[("content", Some(content))])
}
