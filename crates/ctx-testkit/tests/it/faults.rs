//! Connections that fail, and answers that wait.

use std::io::Read;
use std::time::Duration;

use ctx_testkit::provider::{Cut, FakeProvider, Moment, Outcome, Step};
use serde_json::{Value, json};

use crate::client::{exchange, parse, post, request, send};

const CHAT: &str = "/v1/chat/completions";

fn body(stream: bool) -> Value {
    let messages = json!([{ "role": "user", "content": "say it" }]);
    json!({ "model": "m", "stream": stream, "messages": messages })
}

fn asked(stream: bool) -> Vec<u8> {
    request("POST", CHAT, "", &body(stream).to_string())
}

#[test]
fn a_connection_is_cut_where_the_script_says() {
    let text = "one two three ".repeat(20);
    // Cut, whether a stream is requested, whether there is a status, number of whole events,
    // whether there is a partial event.
    let rows = [
        (Cut::BeforeHeaders, true, false, 0, false),
        (Cut::InHeaders, true, false, 0, false),
        (Cut::AfterHeaders, true, true, 0, false),
        (Cut::AfterEvents(3), true, true, 3, false),
        (Cut::InEvent(0), true, true, 0, true),
        (Cut::InEvent(4), true, true, 4, true),
        (Cut::BeforeHeaders, false, false, 0, false),
        (Cut::InHeaders, false, false, 0, false),
        (Cut::AfterHeaders, false, true, 0, false),
        (Cut::InEvent(0), false, true, 0, true),
    ];
    for (cut, stream, status, events, more) in rows {
        for write in [None, Some(11)] {
            let step = Step::text(&text).cut(cut);
            let step = write.map_or(step.clone(), |bytes| step.write_bytes(bytes));
            let provider = FakeProvider::builder().script([step]).start().unwrap();
            let answer = exchange(&provider, &asked(stream));
            let row = format!("{cut:?} {stream} {write:?}: {}", answer.text());
            assert_eq!(answer.status == 200, status, "{row}");
            assert_eq!(answer.raw.is_empty(), cut == Cut::BeforeHeaders, "{row}");
            assert!(!answer.whole, "{row}");
            if stream {
                assert_eq!(answer.text().matches("\n\n").count(), events, "{row}");
            }
            let broken = !answer.body.is_empty() && !answer.text().ends_with("\n\n");
            assert_eq!(broken, more, "{row}");
            assert_eq!(provider.wait_ended(1), Some(Outcome::Cut), "{row}");
        }
    }
    let step = Step::text(&text).cut(Cut::BeforeLastEvent);
    let provider = FakeProvider::builder().script([step]).start().unwrap();
    let answer = exchange(&provider, &asked(true));
    assert!(answer.text().contains("\"finish_reason\":\"stop\""));
    assert!(!answer.text().contains("[DONE]") && !answer.whole);
}

#[test]
fn garbage_is_not_http() {
    let provider = FakeProvider::builder().script([Step::garbage()]).start().unwrap();
    let answer = exchange(&provider, &asked(true));
    assert!(!answer.raw.is_empty() && !answer.raw.starts_with(b"HTTP"), "{answer:?}");
    assert!(std::str::from_utf8(&answer.raw).is_err());
}

#[test]
fn an_answer_waits_until_it_is_released() {
    let stops = [
        (Moment::BeforeHeaders, 0, 0),
        (Moment::AfterHeaders, 1, 0),
        (Moment::AfterEvents(2), 1, 2),
    ];
    for (moment, heads, events) in stops {
        let step = Step::text("late but whole").held_at(moment);
        let provider = FakeProvider::builder().script([step]).start().unwrap();
        let mut stream = send(&provider, &asked(true));
        assert!(provider.wait_arrived(1));
        // Reads everything that comes before the release; the answer is still open then.
        let mut raw = Vec::new();
        let there = |raw: &[u8]| {
            let text = String::from_utf8_lossy(raw).into_owned();
            let head = text.matches("\r\n\r\n").count().min(1);
            (head, parse(raw).text().matches("\n\n").count())
        };
        while there(&raw) < (heads, events) {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            raw.extend(byte);
        }
        assert_eq!(provider.requests()[0].outcome, Outcome::Open, "{moment:?}");
        provider.release();
        stream.read_to_end(&mut raw).unwrap();
        let answer = parse(&raw);
        assert!(answer.whole && answer.text().contains("[DONE]"), "{moment:?} {}", answer.text());
        assert_eq!(provider.wait_ended(1), Some(Outcome::Sent));
    }
}

#[test]
fn each_release_sends_one_answer_and_release_all_sends_the_rest() {
    let provider = FakeProvider::builder().script([Step::text("x").held().always()]);
    let provider = provider.start().unwrap();
    let streams: Vec<_> = (0..4).map(|_| send(&provider, &asked(false))).collect();
    assert!(provider.wait_arrived(4));
    let sent = || provider.requests().iter().filter(|r| r.outcome == Outcome::Sent).count();
    assert_eq!(sent(), 0);
    provider.release();
    assert_eq!(provider.wait_ended(1), Some(Outcome::Sent), "first come, first served");
    assert_eq!(sent(), 1);
    provider.release_all();
    for mut stream in streams {
        let mut raw = Vec::new();
        stream.read_to_end(&mut raw).unwrap();
        assert!(parse(&raw).whole);
    }
    assert_eq!(post(&provider, CHAT, &body(false)).status, 200, "and all that come later");
}

#[test]
fn a_client_that_disconnects_is_detected_at_any_point() {
    let steps = [
        Step::hang(),
        Step::text("x").held(),
        Step::text("x").stalled_at(Moment::AfterHeaders),
        Step::text("some words and some more").stalled_at(Moment::AfterEvents(2)),
        Step::endless("word "),
    ];
    for step in steps {
        let provider = FakeProvider::builder().script([step.clone()]).start().unwrap();
        let stream = send(&provider, &asked(true));
        assert!(provider.wait_arrived(1));
        drop(stream);
        assert_eq!(provider.wait_ended(1), Some(Outcome::Abandoned), "{step:?}");
    }
}

#[test]
fn an_endless_answer_does_not_end() {
    for stream in [true, false] {
        let provider = FakeProvider::builder().script([Step::endless("word ")]).start().unwrap();
        let mut connection = send(&provider, &asked(stream));
        let mut raw = vec![0; 3_000_000];
        connection.read_exact(&mut raw).unwrap();
        assert!(!parse(&raw).whole);
        assert_eq!(provider.requests()[0].outcome, Outcome::Open);
    }
}

#[test]
fn a_delay_ends_without_a_release() {
    let script = [Step::text("x").delayed(Duration::from_millis(1))];
    let provider = FakeProvider::builder().script(script).start().unwrap();
    assert_eq!(exchange(&provider, &asked(false)).status, 200);
}

#[test]
fn dropping_the_provider_cuts_connections_and_frees_the_port() {
    let provider = FakeProvider::builder().script([Step::hang()]).start().unwrap();
    let address = provider.address();
    let mut stream = send(&provider, &asked(false));
    assert!(provider.wait_arrived(1));
    provider.stop();
    let mut raw = Vec::new();
    let _ = stream.read_to_end(&mut raw);
    assert_eq!(raw, b"");
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn hostile_clients_do_not_affect_the_provider() {
    let provider = FakeProvider::builder().start().unwrap();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let rows: [Vec<u8>; 5] = [
        b"\x00\xff\xfe".to_vec(),
        b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n".to_vec(),
        request("POST", CHAT, "", &deep),
        request("POST", CHAT, "", r#"{"messages": {"role": 7}, "model": [], "max_tokens": -3}"#),
        request("POST", CHAT, "", r#"{"messages": [1, null, [[]], {"content": {"type": 1}}]}"#),
    ];
    for bytes in rows {
        let mut connection = send(&provider, &bytes);
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = connection.read_to_end(&mut Vec::new());
        assert_eq!(exchange(&provider, &asked(false)).status, 200);
    }
}
