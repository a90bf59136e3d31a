//! Engines that are found, and engines that are rejected before their code runs.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use ctx_core::ErrorKind;
use tempfile::TempDir;

use super::*;
use crate::manifest::this_platform;

/// A folder to search, with the valid script engine `demo` in it.
struct Fixture {
    folder: TempDir,
}

const SCRIPT: &[u8] = b"#!/bin/sh\nexit 0\n";

impl Fixture {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let fixture = Self { folder };
        fixture.put("demo", SCRIPT, 0o755);
        fixture.describe("demo.toml", "demo", "command = \"demo\"", SCRIPT);
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8], mode: u32) {
        let path = self.path(name);
        let folder = path.parent().unwrap();
        if !folder.exists() {
            fs::create_dir_all(folder).unwrap();
            fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }

    /// Writes a manifest whose platform table names `file`, with the hash of `bytes`.
    fn describe(&self, at: &str, name: &str, file: &str, bytes: &[u8]) {
        let hash = sha256_of(bytes);
        let text = format!(
            "manifest_version = 1\nname = \"{name}\"\nversion = \"0.1.0\"\ncontract = [\"1.0\"]\n\
             [platform.{}]\n{file}\nsha256 = \"{hash}\"\n",
            this_platform()
        );
        self.put(at, text.as_bytes(), 0o644);
    }

    /// Replaces the script with a library of these bytes.
    fn library(&self, bytes: &[u8]) {
        self.put("libdemo.so", bytes, 0o644);
        self.describe("demo.toml", "demo", "library = \"libdemo.so\"", bytes);
    }

    fn search(&self) -> Search {
        Search::default().with_list(self.folder.path().as_os_str())
    }

    fn refused(&self) -> ctx_core::Error {
        let error = self.search().find("demo").unwrap_err();
        assert!(error.hint_text().is_some(), "{error}");
        error
    }
}

/// Compiles a library with the system's C compiler.
pub(super) fn compiled(source: &str) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let (from, to) = (folder.path().join("a.c"), folder.path().join("a.so"));
    fs::write(&from, source).unwrap();
    let status = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&to).arg(&from).status();
    assert!(status.unwrap().success());
    fs::read(to).unwrap()
}

pub(super) const WITH_ENTRY: &str = "const void *ctx_engine_v1(void) { return 0; }";

/// Returns the header of an ELF library for 64-bit machines, with nothing after it.
fn elf_header(machine: u16, bits: u8) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', bits, 1, 1]);
    header[16..18].copy_from_slice(&3u16.to_le_bytes());
    header[18..20].copy_from_slice(&machine.to_le_bytes());
    header[20..24].copy_from_slice(&1u32.to_le_bytes());
    let (size_at, size) = if bits == 2 { (52, 64u16) } else { (40, 52) };
    header[size_at..size_at + 2].copy_from_slice(&size.to_le_bytes());
    header
}

#[test]
fn a_script_with_its_manifest_is_found() {
    let fixture = Fixture::new();
    let found = fixture.search().find("demo").unwrap();
    let program = fixture.path("demo").canonicalize().unwrap();
    assert_eq!(found.path(), program);
    assert_eq!(found.file, EngineFile::Command { program, args: Vec::new() });
    assert_eq!(found.transport(Trust::InProcess), TransportKind::Process);
    assert_eq!(found.place, FolderKind::Variable);
}

#[test]
fn a_library_runs_in_its_own_process_unless_trusted() {
    let fixture = Fixture::new();
    fixture.library(&compiled(WITH_ENTRY));
    let found = fixture.search().find("demo").unwrap();
    assert!(matches!(&found.file, EngineFile::Library(path) if path.ends_with("libdemo.so")));
    assert_eq!(found.transport(Trust::default()), TransportKind::Process);
    assert_eq!(found.transport(Trust::InProcess), TransportKind::Dylib);
}

#[test]
fn an_interpreter_is_searched_in_path_and_gets_the_script_first() {
    let fixture = Fixture::new();
    let by = |name: &str| {
        let file = format!("command = \"demo\"\ninterpreter = \"{name}\"\nargs = [\"-q\"]");
        fixture.describe("demo.toml", "demo", &file, SCRIPT);
    };
    by("sh");
    // A file run by an interpreter need not be executable.
    fs::set_permissions(fixture.path("demo"), Permissions::from_mode(0o644)).unwrap();
    let EngineFile::Command { program, args } = fixture.search().find("demo").unwrap().file else {
        panic!("not a command")
    };
    assert!(program.is_absolute() && program.ends_with("sh"), "{program:?}");
    assert_eq!(args, [fixture.path("demo").canonicalize().unwrap().into_os_string(), "-q".into()]);
    by("no-such-interpreter");
    assert!(fixture.refused().to_string().contains("no-such-interpreter"));
}

#[test]
fn a_bad_library_is_refused_with_the_reason() {
    let whole = compiled(WITH_ENTRY);
    let other = if std::env::consts::ARCH == "aarch64" { 62 } else { 183 };
    for (bytes, kind, words) in [
        (b"int main() {}\n".to_vec(), ErrorKind::Corrupt, "neither a library nor a program"),
        (SCRIPT.to_vec(), ErrorKind::Corrupt, "neither a library nor a program"),
        (Vec::new(), ErrorKind::Corrupt, "neither a library nor a program"),
        (elf_header(other, 2), ErrorKind::Capability, "for another platform"),
        (elf_header(3, 1), ErrorKind::Capability, "for another platform"),
        (whole[..whole.len() / 2].to_vec(), ErrorKind::Corrupt, "damaged"),
        (whole[..40].to_vec(), ErrorKind::Corrupt, "damaged"),
        (
            compiled("int other(void) { return 0; }"),
            ErrorKind::Contract,
            "does not export ctx_engine_v1",
        ),
        (
            compiled(
                "static int ctx_engine_v1(void) { return 0; } void *f(void) { return ctx_engine_v1; }",
            ),
            ErrorKind::Contract,
            "does not export ctx_engine_v1",
        ),
        // Undefined, as in a library that only calls it.
        (
            compiled("extern int ctx_engine_v1(void); int f(void) { return ctx_engine_v1(); }"),
            ErrorKind::Contract,
            "does not export ctx_engine_v1",
        ),
    ] {
        let fixture = Fixture::new();
        fixture.library(&bytes);
        let error = fixture.refused();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert!(error.to_string().contains("libdemo.so"), "{error}");
    }
}

#[test]
fn truncated_and_corrupted_libraries_are_parsed_safely() {
    let whole = compiled(WITH_ENTRY);
    for at in (0..whole.len()).step_by(97) {
        let cut = kind_of("a.so", &whole[..at]);
        assert!(cut.is_err() || at > whole.len() / 2, "cut at {at}: {cut:?}");
        let mut flipped = whole.clone();
        flipped[at] ^= 0xff;
        // Some flipped bytes do not matter; the test is that parsing terminates.
        drop(kind_of("a.so", &flipped));
    }
}

#[test]
fn a_file_that_differs_from_its_manifest_is_refused() {
    let fixture = Fixture::new();
    fixture.put("demo", b"#!/bin/sh\nexit 1\n", 0o755);
    let error = fixture.refused();
    assert!(error.to_string().contains(&sha256_of(SCRIPT)), "{error}");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn files_of_another_user_are_refused() {
    assert!(files::is_trusted(0, 1000) && files::is_trusted(1000, 1000) && files::is_trusted(0, 0));
    assert!(!files::is_trusted(1001, 1000) && !files::is_trusted(1000, 0));
    for name in ["demo", "demo.toml", "."] {
        let fixture = Fixture::new();
        let other = Some(54_321);
        // Only root can give files away.
        if std::os::unix::fs::chown(fixture.path(name), other, None).is_ok() {
            let error = fixture.refused().to_string();
            assert!(error.contains("owned by another user"), "{name}: {error}");
            assert!(error.contains("owner: 54321"), "{name}: {error}");
        }
    }
}

#[test]
fn a_place_that_is_not_a_folder_is_skipped() {
    let fixture = Fixture::new();
    let search = Search::default().with_list(fixture.path("demo").as_os_str());
    for trace in [search.list().trace, search.find_traced("demo").1] {
        let [step] = &trace.steps[..] else { panic!("{trace:?}") };
        assert_eq!(step.outcome, SearchOutcome::PassedOver);
        assert_eq!(step.reason.as_deref(), Some("not a folder"));
    }
}

#[test]
fn files_writable_by_others_are_refused() {
    for name in ["demo", "demo.toml", ""] {
        for (mode, who) in [(0o757, "everybody"), (0o775, "group"), (0o777, "everybody")] {
            let fixture = Fixture::new();
            fs::set_permissions(fixture.path(name), Permissions::from_mode(mode)).unwrap();
            let error = fixture.refused();
            assert!(error.to_string().contains(who), "{name:?} {mode:o}: {error}");
            assert!(error.hint_text().unwrap().contains("chmod go-w"));
        }
    }
    // Other users could replace the folder.
    let fixture = Fixture::new();
    fixture.put("inner/demo", SCRIPT, 0o755);
    fixture.describe("inner/demo.toml", "demo", "command = \"demo\"", SCRIPT);
    fs::set_permissions(fixture.folder.path(), Permissions::from_mode(0o777)).unwrap();
    let search = Search::default().with_list(fixture.path("inner").as_os_str());
    assert!(search.find("demo").unwrap_err().to_string().contains("everybody"));
    fs::set_permissions(fixture.folder.path(), Permissions::from_mode(0o1777)).unwrap();
    assert!(search.find("demo").is_ok());
}

#[test]
fn links_out_of_the_folder_are_refused_and_those_inside_are_followed() {
    let fixture = Fixture::new();
    let elsewhere = Fixture::new();
    fs::remove_file(fixture.path("demo")).unwrap();
    symlink(elsewhere.path("demo"), fixture.path("demo")).unwrap();
    assert!(fixture.refused().to_string().contains("out of the engine's folder"));
    fs::remove_file(fixture.path("demo")).unwrap();
    fixture.put("demo-1", SCRIPT, 0o755);
    symlink("demo-1", fixture.path("demo")).unwrap();
    assert!(fixture.search().find("demo").is_ok());
    fs::remove_file(fixture.path("demo.toml")).unwrap();
    symlink(elsewhere.path("demo.toml"), fixture.path("demo.toml")).unwrap();
    assert!(fixture.refused().to_string().contains("out of the engine's folder"));
}

#[test]
fn only_a_regular_file_with_the_right_name_and_rights_is_accepted() {
    let fixture = Fixture::new();
    fs::set_permissions(fixture.path("demo"), Permissions::from_mode(0o644)).unwrap();
    assert!(fixture.refused().to_string().contains("the program is not executable"));
    fs::set_permissions(fixture.path("demo"), Permissions::from_mode(0o4755)).unwrap();
    assert!(fixture.refused().to_string().contains("set-user-ID"));
    fs::remove_file(fixture.path("demo")).unwrap();
    assert_eq!(fixture.refused().kind(), ErrorKind::NotFound);
    fs::create_dir(fixture.path("demo")).unwrap();
    assert!(fixture.refused().to_string().contains("not a regular file"));
    // Opening a named pipe would block.
    fs::remove_file(fixture.path("demo.toml")).unwrap();
    assert!(Command::new("mkfifo").arg(fixture.path("demo.toml")).status().unwrap().success());
    assert!(fixture.refused().to_string().contains("not a regular file"));
    fs::remove_file(fixture.path("demo.toml")).unwrap();
    fixture.describe("demo.toml", "other", "command = \"demo\"", SCRIPT);
    assert!(fixture.refused().to_string().contains("'other'"));
    fixture.put("demo.toml", &[b'#'; 70_000], 0o644);
    assert!(fixture.refused().to_string().contains("too large"));
    fixture.put("demo.toml", b"\xff\xfe", 0o644);
    assert!(fixture.refused().to_string().contains("not UTF-8 text"));
}

#[test]
fn a_file_that_changes_after_the_check_is_detected() {
    let fixture = Fixture::new();
    let found = fixture.search().find("demo").unwrap();
    assert!(found.check_unchanged().is_ok());
    // An attacker renames a file with other content of the same size into place.
    fixture.put("new", b"#!/bin/sh\nexit 9\n", 0o755);
    fs::rename(fixture.path("new"), fixture.path("demo")).unwrap();
    assert_eq!(found.check_unchanged().unwrap_err().kind(), ErrorKind::Conflict);
    fs::remove_file(fixture.path("demo")).unwrap();
    assert_eq!(found.check_unchanged().unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn the_first_manifest_decides_and_the_trace_lists_all_places() {
    let (first, second) = (Fixture::new(), Fixture::new());
    fs::remove_file(first.path("demo.toml")).unwrap();
    let list = std::env::join_paths([
        Path::new("relative"),
        Path::new(""),
        &first.path("absent"),
        first.folder.path(),
        second.folder.path(),
    ]);
    let search = Search::default().with_list(&list.unwrap()).with_user("relative-home");
    let outcomes = |trace: &SearchTrace| trace.steps.iter().map(|s| s.outcome).collect::<Vec<_>>();
    use SearchOutcome::*;
    let (found, trace) = search.find_traced("demo");
    assert_eq!(found.unwrap().manifest_path, second.path("demo.toml"));
    assert_eq!(outcomes(&trace), [PassedOver, Absent, Absent, Absent, Absent, Found]);
    assert!(trace.steps[0].reason.as_deref().unwrap().contains("working directory"));
    // A broken engine is not replaced by a valid engine of a later folder.
    fs::remove_file(first.path("demo")).unwrap();
    first.put("demo/demo.toml", b"name = ", 0o644);
    let (found, trace) = search.find_traced("demo");
    assert!(found.unwrap_err().to_string().contains("demo/demo.toml"));
    assert_eq!(outcomes(&trace), [PassedOver, Absent, Absent, Absent, Refused]);
    let last = trace.steps.last().unwrap();
    assert!(last.reason.is_some() && last.hint.is_some());
    // Found nowhere: the trace names every place, including the relative home.
    let (found, trace) = search.find_traced("nobody");
    assert_eq!(found.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(trace.steps.len(), 8);
    assert_eq!(trace.steps[7].outcome, PassedOver);
    assert!(search.find("../demo").unwrap_err().hint_text().is_some());
}

#[test]
fn installed_engines_are_listed_once_and_shadowed_ones_are_in_the_trace() {
    let (first, second) = (Fixture::new(), Fixture::new());
    first.put("broken.toml", b"?", 0o644);
    first.put("Not A Name.toml", b"?", 0o644);
    first.put("unrelated/file", b"", 0o644);
    second.put("nested/x", SCRIPT, 0o755);
    second.describe("nested/nested.toml", "nested", "command = \"x\"", SCRIPT);
    let list = std::env::join_paths([first.folder.path(), second.folder.path()]).unwrap();
    let listing = Search::default().with_list(&list).list();
    let engines: Vec<_> =
        listing.engines.iter().map(|e| (e.name.as_str(), e.found.is_ok())).collect();
    assert_eq!(engines, [("broken", false), ("demo", true), ("nested", true)]);
    let steps: Vec<_> = listing
        .trace
        .steps
        .iter()
        .map(|s| (s.outcome, s.path.file_name().unwrap().to_str().unwrap()))
        .collect();
    use SearchOutcome::*;
    let folder = |fixture: &Fixture| fixture.folder.path().file_name().unwrap().to_owned();
    let (one, two) = (folder(&first), folder(&second));
    assert_eq!(
        steps,
        [
            (Searched, one.to_str().unwrap()),
            (Absent, "unrelated.toml"),
            (PassedOver, "Not A Name.toml"),
            (Refused, "broken.toml"),
            (Found, "demo.toml"),
            (Searched, two.to_str().unwrap()),
            (PassedOver, "demo.toml"),
            (Found, "nested.toml"),
        ]
    );
}

#[test]
fn an_engine_for_another_slot_does_not_fill_this_one() {
    let fixture = Fixture::new();
    let path = fixture.path("demo.toml");
    let text = fs::read_to_string(&path).unwrap().replacen("name", "slot = \"memory\"\nname", 1);
    fs::write(path, text).unwrap();
    let error = fixture.refused();
    assert!(error.to_string().contains("memory"), "{error}");
}
