//! `ctx eval`.

mod arms;
mod compact;
mod equal_size;
mod print;
mod recall;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use ctx_config::Profile;
use ctx_core::{Counter, Error, ErrorKind};
use ctx_eval::eval::{EvalArm, EvalReport, EvalSetup, Preset, SessionEval, evaluate};
use ctx_terminal::failure::misuse;
use ctx_terminal::out::Out;
use indicatif::ProgressBar;

use crate::args::{Eval, EvalCommand, Global, Page};
use crate::files::{earlier_page, is_same_file, write_beside};
use crate::setup;

use arms::{Fitter, presets};

pub(crate) fn run(global: &Global, args: &Eval, out: &Out) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(EvalCommand::Recall(args)) => return recall::run(global, args, out),
        Some(EvalCommand::Compact(args)) => return compact::run(global, args, out),
        None => {}
    }
    if !(0.05..=0.9).contains(&args.compact_to) {
        let error = Error::new(ErrorKind::InvalidInput, "invalid --compact-to");
        let error = error.with("value", args.compact_to).hint("give a number from 0.05 to 0.9");
        return Err(misuse(error));
    }
    let presets = presets(&args.presets)?;
    let counter = Counter::new(args.counter);
    let profiles = match args.profiles.len() {
        0 => Profile::all().count(),
        given => given,
    };
    let arms = 1 + profiles * (1 + usize::from(args.memory)) + args.engines.len() + presets.len();
    let bar = out.progress("evaluating", arms * args.sessions.len());
    let sessions = on_all_cores(&args.sessions, |path| {
        session(global, args, path, &presets, counter, (out, &bar))
    })?;
    bar.finish_and_clear();
    let report = EvalReport::of(sessions, &counter, args.compact_to);
    if report.rows.iter().all(|row| row.requests == 0) {
        out.warn("no requests to replay: the transcripts have no answers of a model");
    }
    write_page(&args.page, &args.sessions, out, |writer| {
        ctx_inspector::pages::eval::write(&report, writer)
    })?;
    out.report(args.json, &report, print::print)
}

/// Returns what `work` makes of each item, in order, or the first error. A thread of each core takes the
/// next item when it is done with one.
fn on_all_cores<I: Sync, T: Send>(
    items: &[I],
    work: impl Fn(&I) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let made: Mutex<BTreeMap<usize, anyhow::Result<T>>> = Mutex::default();
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let take = || {
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(at).filter(|_| !has_failed.load(Ordering::Relaxed))
        {
            let one = work(item);
            has_failed.fetch_or(one.is_err(), Ordering::Relaxed);
            made.lock().unwrap_or_else(PoisonError::into_inner).insert(at, one);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(take))));
    made.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

/// Writes the page, if one is requested. It must not replace any of the sessions.
fn write_page(
    page: &Page,
    sessions: &[PathBuf],
    out: &Out,
    write: impl Fn(&mut dyn Write) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let Some(path) = &page.html else { return Ok(()) };
    let source = sessions.iter().find(|session| is_same_file(session, path));
    let source = source.or(sessions.first()).map_or(Path::new("-"), |path| path);
    write_beside(source, path, earlier_page(path, page.force), |writer| Ok(write(writer)?))?;
    out.note(format!("page written to {}", path.display()));
    Ok(())
}

fn session(
    global: &Global,
    args: &Eval,
    path: &Path,
    presets: &[Preset],
    counter: Counter,
    (out, bar): (&Out, &ProgressBar),
) -> anyhow::Result<SessionEval> {
    let transcript = setup::open(path, out)?;
    let (window, model) = (args.window.as_deref(), args.model.as_deref());
    let fitter = Fitter { global, window, model, path, transcript: &transcript };
    let setup = EvalSetup { compact_to: args.compact_to, ..fitter.setup(counter, out)? };
    let engines = fitter.engines(&args.profiles, &args.engines, args.memory)?;
    let engines = engines.into_iter().map(EvalArm::Engine);
    let presets = presets.iter().copied().map(EvalArm::Preset);
    let candidates: Vec<_> =
        [EvalArm::FullHistory].into_iter().chain(engines).chain(presets).collect();
    setup::block_on(evaluate(&transcript, &candidates, &setup, |_| bar.inc(1)))
}
