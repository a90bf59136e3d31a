use std::io::{BufReader, PipeReader, pipe};
use std::thread::{self, JoinHandle};

use ctx_engine_sdk::frame::{self, Received};

use serde_json::Value;

use super::*;

/// An engine served on a pair of pipes.
struct Served {
    input: Option<std::io::PipeWriter>,
    output: BufReader<PipeReader>,
    server: JoinHandle<std::io::Result<()>>,
    /// The encoding of what is sent, and of what must be received.
    encoding: Encoding,
}

impl Served {
    fn start() -> Self {
        let (engine_input, input) = pipe().expect("a pipe");
        let (output, engine_output) = pipe().expect("a pipe");
        let server = thread::spawn(move || {
            ctx_engine_sdk::serve_on::<Scripted>(BufReader::new(engine_input), engine_output)
        });
        let encoding = Encoding::Json;
        Self { input: Some(input), output: BufReader::new(output), server, encoding }
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("it is open");
        let is_call = message["verb"].is_string();
        let encoding = if is_call { self.encoding } else { Encoding::Json };
        let message = encoding.encode(message).expect("it is encoded");
        frame::write(input, message).expect("the engine listens");
    }

    fn receive(&mut self) -> Value {
        let received = frame::read(&mut self.output, 1 << 20);
        let Received::Message(message) = received else { panic!("{received:?}") };
        let value: Value = decode(&message).expect("a message");
        let is_host_call = value["host"].is_string();
        let expected = if is_host_call { Encoding::Json } else { self.encoding };
        assert_eq!(Encoding::of(&message), expected);
        value
    }

    fn end(mut self) {
        self.input = None;
        self.server.join().expect("no panic").expect("no broken pipe");
    }
}

#[test]
fn calls_are_answered_line_by_line_until_the_pipe_ends() {
    let mut served = Served::start();
    served.send(&hello(&json!({"keep": 4})));
    assert_eq!(served.receive()["ok"]["id"], "told");
    // Two at once, a blank line, and a line that is not part of the protocol.
    served.send(&assemble(2, "x", 1));
    served.send(&assemble(3, "x", 2));
    served.send(&json!("\n"));
    assert_eq!(served.receive()["id"], 2);
    assert_eq!(served.receive()["id"], 3);
    assert_eq!(served.receive()["error"]["kind"], "badRequest");
    served.end();
}

#[test]
fn a_reply_is_read_while_calls_wait() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let mut served = Served::start();
        served.send(&hello(&json!({})));
        served.receive();
        served.encoding = encoding;
        served.send(&assemble(2, "count", 1));
        let asked = served.receive();
        assert_eq!(asked["host"], "tokens.count");
        served.send(&assemble(3, "x", 2));
        served.send(&json!({"id": asked["id"], "reply": {"tokens": [11]}}));
        assert_eq!(served.receive()["ok"]["estimatedTokens"], 11);
        assert_eq!(served.receive()["ok"]["keepLast"], 2);
        served.end();
    }
}

#[test]
fn cancelling_a_running_call_does_not_cancel_the_next() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let mut served = Served::start();
        served.send(&hello(&json!({})));
        served.receive();
        served.encoding = encoding;
        served.send(&assemble(2, "count", 1));
        let asked = served.receive();
        served.send(&json!({"cancel": 1}));
        served.send(&json!({"id": asked["id"], "reply": {"tokens": [1]}}));
        assert_eq!(served.receive()["ok"]["estimatedTokens"], 1, "another call was cancelled");
        served.send(&assemble(3, "wait", 2));
        assert_eq!(served.receive()["host"], "log", "the call is at work");
        served.send(&json!({"cancel": 3}));
        served.send(&json!({"id": 1, "reply": {}}));
        assert_eq!(served.receive()["error"]["kind"], "cancelled");
        served.end();
    }
}
