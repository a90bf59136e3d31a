use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use ctx_engine_registry::foreign::transport::{Canceller, HostCallHandler, RawAnswer, Request};

use super::*;

/// A transport whose calls each wait for a command of the test.
struct Scripted {
    started: Sender<u64>,
    words: Arc<Mutex<Receiver<Word>>>,
    at_work: Arc<AtomicUsize>,
    told: Arc<CancelLog>,
}

enum Word {
    Answer,
    Panic,
}

struct CancelLog(Mutex<Sender<u64>>);

impl Canceller for CancelLog {
    fn cancel(&self, id: u64) {
        let _ = self.0.lock().unwrap().send(id);
    }

    fn kill(&self) -> Option<Vec<String>> {
        None
    }
}

impl Transport for Scripted {
    fn call(&mut self, request: Request, _: &mut HostCallHandler<'_>) -> Result<RawAnswer, Fault> {
        assert_eq!(self.at_work.fetch_add(1, Ordering::SeqCst), 0, "one call at a time");
        let _ = self.started.send(request.id);
        let word = self.words.lock().unwrap().recv();
        self.at_work.fetch_sub(1, Ordering::SeqCst);
        assert!(!matches!(word, Ok(Word::Panic)), "the test asks for a panic");
        Ok(request.bytes.into())
    }

    fn is_usable(&self) -> bool {
        true
    }

    fn canceller(&self) -> Arc<dyn Canceller> {
        self.told.clone()
    }
}

struct Script {
    engine: Engine,
    started: Receiver<u64>,
    cancelled: Receiver<u64>,
    words: Sender<Word>,
}

fn script() -> Script {
    let (started, starts) = channel();
    let (words, hears) = channel();
    let (cancels, cancelled) = channel();
    let carrier = Scripted {
        started,
        words: Arc::new(Mutex::new(hears)),
        at_work: Arc::default(),
        told: Arc::new(CancelLog(Mutex::new(cancels))),
    };
    let engine = Engine::open(move || Ok(Box::new(carrier)));
    Script { engine, started: starts, cancelled, words }
}

#[test]
fn calls_from_many_threads_run_one_at_a_time() {
    let script = script();
    for _ in 0..32 {
        script.words.send(Word::Answer).unwrap();
    }
    thread::scope(|scope| {
        for n in 0..32 {
            let engine = &script.engine;
            scope.spawn(move || {
                let answer = block_on(engine.ask("assemble", json!({"n": n}), LONG)).unwrap();
                assert_eq!(answer["params"]["n"], n, "each has its own answer");
            });
        }
    });
}

#[test]
fn an_abandoned_call_is_cancelled_and_its_late_answer_discarded() {
    let script = script();
    let mut first = Box::pin(script.engine.ask("assemble", json!({"n": 1}), LONG));
    assert!(poll(first.as_mut()).is_pending());
    let at_work = script.started.recv().unwrap();
    drop(first);
    assert_eq!(script.cancelled.recv().unwrap(), at_work);
    let mut second = Box::pin(script.engine.ask("assemble", json!({"n": 2}), LONG));
    assert!(poll(second.as_mut()).is_pending());
    script.words.send(Word::Answer).unwrap();
    script.words.send(Word::Answer).unwrap();
    assert_eq!(block_on(second).unwrap()["params"]["n"], 2);
    assert!(!script.engine.caller.is_lost());
}

#[test]
fn a_queued_call_that_is_dropped_is_never_made() {
    let script = script();
    let mut first = Box::pin(script.engine.ask("assemble", json!({}), LONG));
    assert!(poll(first.as_mut()).is_pending());
    let first_id = script.started.recv().unwrap();
    let mut second = Box::pin(script.engine.ask("assemble", json!({}), LONG));
    assert!(poll(second.as_mut()).is_pending());
    drop(second);
    script.words.send(Word::Answer).unwrap();
    block_on(first).unwrap();
    script.words.send(Word::Answer).unwrap();
    block_on(script.engine.ask("assemble", json!({}), LONG)).unwrap();
    assert_eq!(script.started.recv().unwrap(), first_id + 2);
}

#[test]
fn waiting_too_long_in_the_queue_is_no_fault_of_the_engine() {
    let script = script();
    let mut first = Box::pin(script.engine.ask("compact", json!({}), LONG));
    assert!(poll(first.as_mut()).is_pending());
    script.started.recv().unwrap();
    let fault = block_on(script.engine.ask("assemble", json!({}), SHORT)).unwrap_err();
    assert_eq!(fault.name(), "busy");
    script.words.send(Word::Answer).unwrap();
    assert!(block_on(first).is_ok());
}

#[test]
fn losing_an_engine_fails_all_queued_calls() {
    let script = script();
    let mut waits = Box::pin(script.engine.ask("assemble", json!({}), SHORT));
    assert!(poll(waits.as_mut()).is_pending());
    script.started.recv().unwrap();
    let mut next = Box::pin(script.engine.ask("assemble", json!({}), LONG));
    assert!(poll(next.as_mut()).is_pending());
    assert_eq!(block_on(waits).unwrap_err().name(), "deadline");
    assert_eq!(block_on(next).unwrap_err().name(), "lost");
    // Its thread returns, and the caller is gone.
    script.words.send(Word::Answer).unwrap();
    assert_eq!(script.engine.fault("assemble", LONG), "lost");
}

#[test]
fn an_engine_that_never_opens_is_abandoned_at_the_first_deadline() {
    let (release, released) = channel::<()>();
    let engine = Engine::open(move || {
        let _ = released.recv();
        Ok(Box::new(Process::open(&shell("exec cat"))?))
    });
    assert_eq!(engine.fault("hello", SHORT), "deadline");
    assert!(engine.caller.is_lost());
    drop(release);
}

#[test]
fn a_panic_of_the_host_is_a_fault() {
    let script = script();
    script.words.send(Word::Panic).unwrap();
    assert_eq!(script.engine.fault("assemble", LONG), "panicked");
    script.words.send(Word::Answer).unwrap();
    assert!(script.engine.call("assemble").is_ok());
}

#[test]
fn a_caller_can_be_dropped_during_a_call() {
    let engine = Engine::program(shell("exec sleep 3600"));
    let mut call = Box::pin(engine.ask("hello", json!({}), LONG));
    assert!(poll(call.as_mut()).is_pending());
    drop(call);
    drop(engine);

    let script = script();
    let mut call = Box::pin(script.engine.ask("hello", json!({}), LONG));
    assert!(poll(call.as_mut()).is_pending());
    script.started.recv().unwrap();
    drop(call);
    drop(script.engine);
}
