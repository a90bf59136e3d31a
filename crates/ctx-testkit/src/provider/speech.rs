//! An answer, before it is formatted for an API.

use bytes::Bytes;
use ctx_core::Usage;
use serde_json::{Value, json};

use super::api::{Api, anthropic, chat, gemini, ollama, responses};
use super::delivery::Events;
use super::script::{Answer, Call, Finish};

/// Characters per delta, and the default maximum number of deltas.
const DELTA_CHARS: usize = 24;
const MAX_DELTAS: usize = 200;
/// White space for endless answers.
const PADDING: [u8; 16 * 1024] = [b' '; 16 * 1024];

/// An answer with all data for its wire format.
#[derive(Clone, Debug, Default)]
pub(super) struct Speech {
    pub(super) number: usize,
    pub(super) model: String,
    pub(super) thinking: String,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) finish: Finish,
    /// The reported usage; `None` if it is not reported.
    pub(super) usage: Option<Usage>,
    /// Chat completions report usage in a stream only if requested.
    pub(super) include_usage: bool,
    /// Responses contain encrypted reasoning only if requested.
    pub(super) sealed: bool,
    pub(super) endless: bool,
    /// Whether a stream is one list instead of events (Gemini).
    pub(super) is_list: bool,
    /// The signature of the thinking, if the provider returns one.
    pub(super) signature: Option<String>,
}

/// An event of a stream.
pub(super) struct Event {
    pub(super) name: Option<&'static str>,
    pub(super) data: String,
    /// Whether it contains a part of the text.
    pub(super) is_text: bool,
}

impl Event {
    /// An event without a name.
    pub(super) fn data(data: &Value) -> Self {
        Self { name: None, data: data.to_string(), is_text: false }
    }

    /// An event whose name is also its `type`.
    pub(super) fn named(name: &'static str, data: &Value) -> Self {
        Self { name: Some(name), data: data.to_string(), is_text: false }
    }

    /// Marks it as an event with text.
    pub(super) fn text(self) -> Self {
        Self { is_text: true, ..self }
    }

    /// Returns its bytes on the wire.
    fn bytes(&self, api: Api, crlf: bool) -> Bytes {
        if api.is_ollama() {
            return Bytes::from(format!("{}\n", self.data));
        }
        let name = self.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        let event = format!("{name}data: {}\n\n", self.data);
        match crlf {
            true => Bytes::from(format!(": still here\n{event}").replace('\n', "\r\n")),
            false => Bytes::from(event),
        }
    }
}

impl Speech {
    /// Creates it from a scripted answer.
    pub(super) fn new(number: usize, model: &str, answer: Answer) -> Self {
        let by_itself = if answer.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        let text = match answer.endless && answer.text.is_empty() {
            true => "and so on ".to_owned(),
            false => answer.text,
        };
        Self {
            number,
            model: model.to_owned(),
            thinking: answer.thinking,
            text,
            calls: answer.calls,
            finish: answer.finish.unwrap_or(by_itself),
            endless: answer.endless,
            ..Self::default()
        }
    }

    /// Returns its size in characters, for the usage.
    pub(super) fn chars(&self) -> u64 {
        let calls = self.calls.iter().map(|call| call.name.len() + arguments(call).len());
        let texts = self.text.chars().count() + self.thinking.chars().count();
        (texts + calls.sum::<usize>()) as u64
    }

    /// Returns the body of an answer that is not streamed.
    pub(super) fn whole(&self, api: Api) -> Events {
        if self.endless {
            let endless = Some((1, Bytes::from_static(&PADDING)));
            return Events { all: vec![Bytes::from_static(b"{")], endless };
        }
        let body = match api {
            Api::Responses => responses::whole(self),
            Api::Messages => anthropic::whole(self),
            Api::Gemini => gemini::whole(self),
            Api::OllamaChat => ollama::whole(self),
            _ => chat::whole(self),
        };
        Events::whole(body.to_string())
    }

    /// Returns the body of a stream.
    pub(super) fn stream(&self, api: Api, crlf: bool) -> Events {
        let events = match api {
            Api::Responses => responses::events(self),
            Api::Messages => anthropic::events(self),
            Api::Gemini => gemini::events(self),
            Api::OllamaChat => ollama::events(self),
            _ => chat::events(self),
        };
        let last_text = events.iter().rposition(|event| event.is_text).filter(|_| self.endless);
        let all: Vec<_> = match self.is_list {
            true => as_list(&events),
            false => events.iter().map(|event| event.bytes(api, crlf)).collect(),
        };
        let endless = last_text.and_then(|at| Some((at + 1, all.get(at)?.clone())));
        Events { all, endless }
    }

    /// Returns a stream that fails after this number of events.
    pub(super) fn failing(&self, api: Api, error: &Value, after: usize, crlf: bool) -> Events {
        let mut events = self.stream(api, crlf);
        events.endless = None;
        events.all.truncate(after);
        let failure = match api {
            Api::Responses => responses::failed(self, error, events.all.len()),
            Api::Messages => Event::named("error", error),
            _ => Event::data(error),
        };
        events.all.push(match self.is_list {
            true => {
                Bytes::from(format!("{}{}]", if after == 0 { "[" } else { ",\r\n" }, failure.data))
            }
            false => failure.bytes(api, crlf),
        });
        events
    }

    /// Splits a text into the deltas of a stream.
    pub(super) fn deltas(text: &str) -> Vec<&str> {
        let size = text.chars().count().div_ceil(MAX_DELTAS).max(DELTA_CHARS);
        let mut starts: Vec<_> = text.char_indices().step_by(size).map(|(at, _)| at).collect();
        starts.push(text.len());
        let ends = starts.windows(2);
        ends.filter_map(|pair| text.get(*pair.first()?..*pair.last()?)).collect()
    }
}

/// Formats a stream as one list, element by element.
fn as_list(events: &[Event]) -> Vec<Bytes> {
    let last = events.len().saturating_sub(1);
    let element = |(n, event): (usize, &Event)| {
        let before = if n == 0 { "[" } else { ",\r\n" };
        let after = if n == last { "]" } else { "" };
        Bytes::from(format!("{before}{}{after}", event.data))
    };
    events.iter().enumerate().map(element).collect()
}

/// Returns a call's arguments as an object; arguments that are not JSON can only be sent as text.
pub(super) fn object_arguments(call: &Call) -> Value {
    match &call.arguments {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!({})),
        Value::Null => json!({}),
        value => value.clone(),
    }
}

/// Returns a call's arguments as JSON text.
pub(super) fn arguments(call: &Call) -> String {
    match &call.arguments {
        Value::String(text) => text.clone(),
        Value::Null => "{}".to_owned(),
        value => value.to_string(),
    }
}
