//! Determines the kind of a file from its bytes, without running any of it.

use std::env::consts::{ARCH, OS};

use ctx_core::{Error, ErrorKind, Result};
use ctx_engine_sdk::abi::ENTRY;
use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};
use object::{Architecture, BinaryFormat, NameOrOrdinal, Object, ObjectKind, ObjectSegment};
use serde::{Deserialize, Serialize};

/// The kind of a file that contains an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FileKind {
    /// A library with the entry point of an engine.
    Library,
    /// A program of this platform.
    Program,
    /// A script that names its interpreter.
    Script,
}

/// Determines the kind of a file from its bytes: a library that can be loaded here and exports the
/// entry point of an engine, or something that can be run here. A library without the entry point
/// is distinguished from a program by its `name`.
///
/// # Errors
///
/// `Corrupt`, for a file that is neither, or is incomplete; `Capability`, for a file of another
/// platform; `Contract`, for a library without the entry point.
pub fn kind_of(name: &str, bytes: &[u8]) -> Result<FileKind> {
    let named_library = [".so", ".dylib", ".dll"].iter().any(|ending| name.ends_with(ending));
    if bytes.starts_with(b"#!") && !named_library {
        return Ok(FileKind::Script);
    }
    if named_library {
        return library(bytes).map(|()| FileKind::Library);
    }
    let file = of_this_platform(bytes)?;
    Ok(if exports_entry(&file) { FileKind::Library } else { FileKind::Program })
}

/// Rejects everything but a library of an engine that can be loaded here.
pub(super) fn library(bytes: &[u8]) -> Result<()> {
    let file = of_this_platform(bytes)?;
    if file.kind() != ObjectKind::Dynamic {
        return Err(Error::new(ErrorKind::Corrupt, "not a dynamic library")
            .with("kind", format!("{:?}", file.kind()).to_lowercase())
            .hint("build it as a dynamic library: crate-type = [\"cdylib\"], or cc -shared"));
    }
    if !exports_entry(&file) {
        return Err(Error::new(
            ErrorKind::Contract,
            format!("the library does not export {ENTRY}"),
        )
        .hint("it is not a ctx engine, or the symbol is hidden: see ctx_engine.h"));
    }
    Ok(())
}

/// Rejects everything that cannot be run here directly.
pub(super) fn program(bytes: &[u8]) -> Result<()> {
    if bytes.starts_with(b"#!") {
        return Ok(());
    }
    let file = of_this_platform(bytes)?;
    match file.kind() {
        ObjectKind::Executable | ObjectKind::Dynamic => Ok(()),
        kind => Err(Error::new(ErrorKind::Corrupt, "not a program")
            .with("kind", format!("{kind:?}").to_lowercase())
            .hint("use the linked program, not an object file")),
    }
}

fn of_this_platform(bytes: &[u8]) -> Result<object::File<'_>> {
    let file = parse(bytes)?;
    let system = system_of(file.format());
    let architecture = architecture_of(file.architecture());
    if (system, architecture.as_str()) != (system_of_host(), ARCH) {
        return Err(other_platform(&format!("{system}-{architecture}")));
    }
    // The headers come first, so a truncated file may still have them.
    if file.segments().any(|segment| segment.data().is_err()) {
        return Err(damaged("the file is truncated"));
    }
    Ok(file)
}

/// Parses an object file, or the part of a macOS universal file that is for this machine.
fn parse(bytes: &[u8]) -> Result<object::File<'_>> {
    let of = |bytes| object::File::parse(bytes).map_err(|e| damaged(&e.to_string()));
    match object::FileKind::parse(bytes) {
        Ok(object::FileKind::MachOFat32) => {
            let fat = MachOFatFile32::parse(bytes).map_err(|e| damaged(&e.to_string()))?;
            of(slice_for_host(fat.arches(), bytes)?)
        }
        Ok(object::FileKind::MachOFat64) => {
            let fat = MachOFatFile64::parse(bytes).map_err(|e| damaged(&e.to_string()))?;
            of(slice_for_host(fat.arches(), bytes)?)
        }
        Ok(_) => of(bytes),
        Err(_) => Err(Error::new(ErrorKind::Corrupt, "neither a library nor a program")
            .with("begins with", beginning(bytes))
            .hint("a script needs `#!` in its first line, or `interpreter` in the manifest")),
    }
}

fn slice_for_host<'d, A: FatArch>(arches: &[A], bytes: &'d [u8]) -> Result<&'d [u8]> {
    let Some(arch) = arches.iter().find(|a| architecture_of(a.architecture()) == ARCH) else {
        let all: Vec<_> =
            arches.iter().map(|a| format!("macos-{}", architecture_of(a.architecture()))).collect();
        return Err(other_platform(&all.join(", ")));
    };
    arch.data(bytes).map_err(|e| damaged(&e.to_string()))
}

fn exports_entry(file: &object::File<'_>) -> bool {
    // On macOS, C symbols have a leading underscore.
    let underscored = file.format() == BinaryFormat::MachO;
    let is_entry = |name: NameOrOrdinal<&[u8]>| {
        let NameOrOrdinal::Name(name) = name else { return false };
        name == ENTRY.as_bytes()
            || (underscored && name.strip_prefix(b"_") == Some(ENTRY.as_bytes()))
    };
    let Ok(exports) = file.exports() else { return false };
    exports.map_while(object::Result::ok).any(|export| is_entry(export.name()))
}

/// Returns the system of a file format. The Unix systems that use ELF are not distinguished.
fn system_of(format: BinaryFormat) -> &'static str {
    match format {
        BinaryFormat::Elf if !matches!(OS, "macos" | "ios" | "windows") => OS,
        BinaryFormat::Elf => "linux",
        BinaryFormat::MachO => "macos",
        BinaryFormat::Pe => "windows",
        _ => "unknown",
    }
}

fn system_of_host() -> &'static str {
    if OS == "ios" { "macos" } else { OS }
}

fn architecture_of(architecture: Architecture) -> String {
    match architecture {
        Architecture::X86_64 => "x86_64".to_owned(),
        Architecture::Aarch64 => "aarch64".to_owned(),
        Architecture::I386 => "x86".to_owned(),
        Architecture::PowerPc64 => "powerpc64".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn other_platform(platform: &str) -> Error {
    Error::new(ErrorKind::Capability, "the file is for another platform")
        .with("file", platform)
        .with("host", format!("{OS}-{ARCH}"))
        .hint("use a release of the engine for this platform, or build it here")
}

fn damaged(why: &str) -> Error {
    Error::new(ErrorKind::Corrupt, "the file is damaged")
        .with("reason", why)
        .hint("it may be truncated: reinstall the engine")
}

/// Returns the first bytes in quotes, escaped, for error messages.
fn beginning(bytes: &[u8]) -> String {
    const SHOWN: usize = 16;
    format!("\"{}\"", bytes[..bytes.len().min(SHOWN)].escape_ascii())
}
