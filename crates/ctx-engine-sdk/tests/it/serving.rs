use std::io::{BufRead, BufReader, PipeReader, Write, pipe};
use std::thread::{self, JoinHandle};

use serde_json::Value;

use super::*;

/// An engine served on a pair of pipes.
struct Served {
    input: Option<std::io::PipeWriter>,
    output: BufReader<PipeReader>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Served {
    fn start() -> Self {
        let (engine_input, input) = pipe().expect("a pipe");
        let (output, engine_output) = pipe().expect("a pipe");
        let server = thread::spawn(move || {
            ctx_engine_sdk::serve_on::<Told>(BufReader::new(engine_input), engine_output)
        });
        Self { input: Some(input), output: BufReader::new(output), server }
    }

    fn tell(&mut self, line: &Value) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{line}").expect("the engine listens");
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }

    fn end(mut self) {
        self.input = None;
        self.server.join().expect("no panic").expect("no broken pipe");
    }
}

#[test]
fn calls_are_answered_line_by_line_until_the_pipe_ends() {
    let mut served = Served::start();
    served.tell(&hello(&json!({"keep": 4})));
    assert_eq!(served.hear()["ok"]["id"], "told");
    // Two at once, a blank line, and a line that is not part of the protocol.
    served.tell(&assemble(2, "x", 1));
    served.tell(&assemble(3, "x", 2));
    served.tell(&json!("\n"));
    assert_eq!(served.hear()["id"], 2);
    assert_eq!(served.hear()["id"], 3);
    assert_eq!(served.hear()["error"]["kind"], "badRequest");
    served.end();
}

#[test]
fn a_reply_finds_its_way_past_calls_that_wait() {
    let mut served = Served::start();
    served.tell(&hello(&json!({})));
    served.hear();
    served.tell(&assemble(2, "count", 1));
    let asked = served.hear();
    assert_eq!(asked["host"], "tokens.count");
    served.tell(&assemble(3, "x", 2));
    served.tell(&json!({"id": asked["id"], "reply": {"tokens": [11]}}));
    assert_eq!(served.hear()["ok"]["estimatedTokens"], 11);
    assert_eq!(served.hear()["ok"]["keepLast"], 2);
    served.end();
}

#[test]
fn a_call_at_work_can_be_cancelled_and_the_next_one_is_not() {
    let mut served = Served::start();
    served.tell(&hello(&json!({})));
    served.hear();
    served.tell(&assemble(2, "count", 1));
    let asked = served.hear();
    served.tell(&json!({"cancel": 1}));
    served.tell(&json!({"id": asked["id"], "reply": {"tokens": [1]}}));
    assert_eq!(served.hear()["ok"]["estimatedTokens"], 1, "another call was cancelled");
    served.tell(&assemble(3, "wait", 2));
    assert_eq!(served.hear()["host"], "log", "the call is at work");
    served.tell(&json!({"cancel": 3}));
    served.tell(&json!({"id": 1, "reply": {}}));
    assert_eq!(served.hear()["error"]["kind"], "cancelled");
    served.end();
}
