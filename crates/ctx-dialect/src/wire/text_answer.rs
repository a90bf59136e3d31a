//! An answer that consists of a text, in the form of each API.

use super::context_compaction as compaction;
use super::response_object::{ResponseHead, numbered, text_part, typed};
use super::{Protocol, Route};
use crate::json::{ObjectWriter, array, text_block};

/// A text as the answer to a request.
#[derive(Clone, Debug)]
pub struct TextAnswer<'a> {
    /// The ids of the answer and of its parts end in this.
    pub id: &'a str,
    /// The model of the request.
    pub model: &'a str,
    /// When it was made, in seconds since 1970.
    pub created_at: i64,
    /// The text.
    pub text: &'a str,
    /// Whether it is a compaction of Anthropic.
    pub is_compaction: bool,
    /// The tokens of the request.
    pub input_tokens: u64,
    /// The tokens of the text.
    pub output_tokens: u64,
}

impl TextAnswer<'_> {
    /// Returns the body of the answer: a stream of events, or one object.
    #[must_use]
    pub fn body(&self, route: &Route, streams: bool) -> String {
        match (route.protocol, streams) {
            (Protocol::Chat, _) if route.is_ollama => format!("{}\n", self.ollama()),
            (Protocol::Chat, true) => self.chat_stream(),
            (Protocol::Chat, false) => self.chat("chat.completion", "message", Some("stop")),
            (Protocol::Messages | Protocol::Converse, true) => self.messages_stream(),
            (Protocol::Messages | Protocol::Converse, false) => {
                self.message(&[&self.block()], Some(self.stop_reason()))
            }
            (Protocol::Responses, true) => self.responses_stream(),
            (Protocol::Responses, false) => {
                self.response("completed", &[&self.head().message(Some(self.text))])
            }
            (Protocol::Gemini, true) => event(&self.gemini()),
            (Protocol::Gemini, false) => self.gemini(),
        }
    }

    fn usage(&self, input: &str, output: &str, total: Option<&str>) -> ObjectWriter {
        let usage =
            ObjectWriter::new().plain(input, self.input_tokens).plain(output, self.output_tokens);
        match total {
            Some(total) => usage.plain(total, self.input_tokens + self.output_tokens),
            None => usage,
        }
    }

    fn chat(&self, object: &str, part: &str, finish: Option<&str>) -> String {
        let message = ObjectWriter::new().text("role", "assistant").text("content", self.text);
        let choice = ObjectWriter::new().plain("index", 0).raw(part, message.end());
        let choice = match finish {
            Some(reason) => choice.text("finish_reason", reason),
            None => choice.raw("finish_reason", "null"),
        };
        self.chat_object(object, &choice.end(), finish.is_some())
    }

    /// Writes an object; only the last one of a stream has the usage.
    fn chat_object(&self, object: &str, choice: &str, is_last: bool) -> String {
        let usage = self.usage("prompt_tokens", "completion_tokens", Some("total_tokens"));
        ObjectWriter::new()
            .text("id", &format!("chatcmpl-{}", self.id))
            .text("object", object)
            .plain("created", self.created_at)
            .text("model", self.model)
            .raw("choices", array([choice]))
            .raw_if("usage", is_last.then(|| usage.end()))
            .end()
    }

    fn chat_stream(&self) -> String {
        let last = ObjectWriter::new().plain("index", 0).raw("delta", "{}");
        let last = last.text("finish_reason", "stop").end();
        let chunk = "chat.completion.chunk";
        [
            event(&self.chat(chunk, "delta", None)),
            event(&self.chat_object(chunk, &last, true)),
            event("[DONE]"),
        ]
        .concat()
    }

    fn ollama(&self) -> String {
        let message = ObjectWriter::new().text("role", "assistant").text("content", self.text);
        let created_at = jiff::Timestamp::from_second(self.created_at).unwrap_or_default();
        ObjectWriter::new()
            .text("model", self.model)
            .text("created_at", &created_at.to_string())
            .raw("message", message.end())
            .raw("done", "true")
            .text("done_reason", "stop")
            .with(&self.usage("prompt_eval_count", "eval_count", None))
            .end()
    }

    fn message(&self, content: &[&str], stop: Option<&str>) -> String {
        let message = ObjectWriter::new()
            .text("id", &format!("msg_{}", self.id))
            .text("type", "message")
            .text("role", "assistant")
            .text("model", self.model)
            .raw("content", array(content));
        let message = match stop {
            Some(reason) => message.text("stop_reason", reason),
            None => message.raw("stop_reason", "null"),
        };
        message.raw("stop_sequence", "null").raw("usage", self.message_usage()).end()
    }

    /// Returns the usage of an answer of Anthropic, whose sums do not contain a compaction.
    fn message_usage(&self) -> String {
        let usage = self.usage("input_tokens", "output_tokens", None);
        if !self.is_compaction {
            return usage.end();
        }
        let made = compaction::iteration("compaction", self.input_tokens, self.output_tokens);
        let none = ObjectWriter::new().plain("input_tokens", 0).plain("output_tokens", 0);
        none.raw("iterations", array([made])).end()
    }

    /// Returns the block of an answer of Anthropic.
    fn block(&self) -> String {
        match self.is_compaction {
            true => compaction::block(Some(self.text)),
            false => text_block(self.text),
        }
    }

    fn stop_reason(&self) -> &'static str {
        if self.is_compaction { compaction::STOP_REASON } else { "end_turn" }
    }

    fn messages_stream(&self) -> String {
        let new = ObjectWriter::new;
        let index = || new().plain("index", 0);
        let (block, delta) = match self.is_compaction {
            true => (compaction::block(None), compaction::delta(self.text)),
            false => {
                let delta = new().text("type", "text_delta").text("text", self.text);
                (text_block(""), delta.end())
            }
        };
        let stop = new().text("stop_reason", self.stop_reason()).raw("stop_sequence", "null").end();
        let usage = self.message_usage();
        [
            typed("message_start", &new().raw("message", self.message(&[], None))),
            typed("content_block_start", &index().raw("content_block", block)),
            typed("content_block_delta", &index().raw("delta", delta)),
            typed("content_block_stop", &index()),
            typed("message_delta", &new().raw("delta", stop).raw("usage", usage)),
            typed("message_stop", &new()),
        ]
        .concat()
    }

    fn head(&self) -> ResponseHead<'_> {
        ResponseHead { id: self.id, model: self.model, created_at: self.created_at }
    }

    fn response(&self, status: &str, items: &[&String]) -> String {
        let usage = self.usage("input_tokens", "output_tokens", Some("total_tokens"));
        self.head().response(status, items).raw("usage", usage.end()).end()
    }

    fn responses_stream(&self) -> String {
        let new = ObjectWriter::new;
        let (head, item) = (self.head(), new().plain("output_index", 0));
        let done = head.message(Some(self.text));
        let part = item.clone().text("item_id", &head.item_id()).plain("content_index", 0);
        let in_item = |kind, json: String| (kind, item.clone().raw("item", json));
        let in_part = |kind, json: String| (kind, part.clone().raw("part", json));
        let whole = |kind, response| (kind, new().raw("response", response));
        numbered([
            whole("response.created", self.response("in_progress", &[])),
            in_item("response.output_item.added", head.message(None)),
            in_part("response.content_part.added", text_part("")),
            ("response.output_text.delta", part.clone().text("delta", self.text)),
            ("response.output_text.done", part.clone().text("text", self.text)),
            in_part("response.content_part.done", text_part(self.text)),
            in_item("response.output_item.done", done.clone()),
            whole("response.completed", self.response("completed", &[&done])),
        ])
    }

    fn gemini(&self) -> String {
        let part = ObjectWriter::new().text("text", self.text).end();
        let content = ObjectWriter::new().raw("parts", array([part])).text("role", "model");
        let candidate = ObjectWriter::new()
            .raw("content", content.end())
            .text("finishReason", "STOP")
            .plain("index", 0);
        let usage = self.usage("promptTokenCount", "candidatesTokenCount", Some("totalTokenCount"));
        ObjectWriter::new()
            .raw("candidates", array([candidate.end()]))
            .raw("usageMetadata", usage.end())
            .text("modelVersion", self.model)
            .text("responseId", self.id)
            .end()
    }
}

/// Returns an event without a name.
fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{answer_text, route};

    #[test]
    fn the_text_of_an_answer_is_read_back() {
        let text = "one \"line\"\nand another: é";
        let made = TextAnswer {
            id: "1",
            model: "m",
            created_at: 9,
            text,
            is_compaction: false,
            input_tokens: 5,
            output_tokens: 2,
        };
        for path in [
            "/v1/chat/completions",
            "/api/chat",
            "/v1/messages",
            "/v1/responses",
            "/v1beta/models/m:generateContent",
        ] {
            let route = route("POST", path).unwrap();
            for streams in [true, false] {
                let body = made.body(&route, streams);
                assert_eq!(answer_text(route.protocol, body.as_bytes()), text, "{path} {body}");
                let mut watch = crate::wire::Watch::new(route.protocol);
                watch.push(body.as_bytes());
                watch.end();
                assert!(watch.is_finished() && watch.failure().is_none(), "{path} {body}");
                let time = r#""created_at":"1970-01-01T00:00:09Z""#;
                assert_eq!(body.contains(time), route.is_ollama, "{path} {body}");
                assert_eq!(watch.usage().map(|usage| usage.prompt()), Some(5), "{path} {body}");
            }
        }
    }
}
