//! Tests the engine behind its driver, as a host uses it.

use std::sync::atomic::AtomicBool;

use ctx_engine_sdk::{Driver, Error, HostTransport, Result};
use serde_json::{Value, json};
use sliding_window::SlidingWindow;

struct NoServices;

impl HostTransport for NoServices {
    fn call(&mut self, _: &[u8]) -> Result<Vec<u8>> {
        Err(Error::failed("this engine calls no service"))
    }
}

#[derive(Default)]
struct Driven(Driver<SlidingWindow>);

impl Driven {
    fn up(config: &Value) -> Self {
        let mut driven = Self::default();
        let hello = json!({"protocol": "1.0", "config": config});
        assert_eq!(driven.ask("hello", &hello)["ok"]["contents"], false);
        driven
    }

    fn ask(&mut self, verb: &str, params: &Value) -> Value {
        let call = json!({"id": 1, "verb": verb, "params": params}).to_string();
        let answer = self.0.answer(call.as_bytes(), &mut NoServices, &AtomicBool::new(false));
        serde_json::from_slice(&answer).expect("JSON")
    }

    /// Sends all rows again, and returns the number of rows kept.
    fn kept(&mut self, rows: &[Value], budget: u64) -> usize {
        let update = json!({"reset": true, "added": rows, "rows": rows.len()});
        let params = json!({"sessionId": "s", "update": update, "budget": {"messages": budget}});
        self.ask("assemble", &params)["ok"]["keepLast"].as_u64().expect("a number") as usize
    }
}

fn rows(groups: &[u64], tokens: u64) -> Vec<Value> {
    let row = |(at, group): (usize, &u64)| json!({"id": format!("é{at}"), "role": "user", "tokens": tokens, "group": group});
    groups.iter().enumerate().map(row).collect()
}

#[test]
fn a_session_that_fits_stays_whole() {
    let all = rows(&[1, 2, 3, 4], 25);
    assert_eq!(Driven::up(&json!({})).kept(&all, 100), 4);
    assert_eq!(Driven::up(&json!({})).kept(&[], 100), 0);
}

#[test]
fn a_too_large_session_is_cut_to_the_share_and_not_again_until_it_exceeds_the_budget() {
    let mut driven = Driven::up(&json!({}));
    let groups: Vec<u64> = (0..40).collect();
    let kept: Vec<usize> = (10..20).map(|n| driven.kept(&rows(&groups[..n], 10), 100)).collect();
    // Ten rows fit. The eleventh causes a cut to five, and the next cut is at eleven rows again.
    assert_eq!(kept, [10, 5, 6, 7, 8, 9, 10, 5, 6, 7]);
}

#[test]
fn overlapping_groups_are_not_split() {
    // Calls 2 and 3 overlap: the cut must be before or after both.
    let all = rows(&[0, 1, 2, 3, 2, 3, 4, 5], 10);
    for (budget, kept) in [(70, 2), (79, 2), (60, 2), (20, 1), (10, 1), (9, 0)] {
        assert_eq!(Driven::up(&json!({})).kept(&all, budget), kept, "{budget}");
    }
    let share = json!({"share": 0.9});
    assert_eq!(Driven::up(&share).kept(&all, 70), 6);
}

#[test]
fn protected_rows_count_in_the_share() {
    let mut all = rows(&(0..12).collect::<Vec<_>>(), 10);
    all[0]["keep"] = json!(true);
    // The share is 50 tokens, of which the protected row takes ten.
    assert_eq!(Driven::up(&json!({})).kept(&all, 100), 4);
}

#[test]
fn ten_thousand_rows_are_cut_like_a_few() {
    let groups: Vec<u64> = (0..10_000).map(|n| n / 2).collect();
    assert_eq!(Driven::up(&json!({})).kept(&rows(&groups, 7), 700), 50);
}

#[test]
fn an_invalid_share_is_refused_with_a_hint() {
    for share in [json!(0), json!(1.5), json!("half"), Value::Null] {
        let mut driven = Driven::default();
        let params = json!({"protocol": "1.0", "config": {"share": share}});
        let answer = driven.ask("hello", &params);
        assert!(answer["error"]["message"].as_str().unwrap().contains("'share'"), "{answer}");
        assert_eq!(answer["error"]["hint"], "omit it for the default 0.5");
    }
}
