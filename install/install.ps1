# Installs ctx: downloads the archive of Windows, verifies its checksum, and copies the binary.
#   CTX_INSTALL_DIR  the folder of the binary [default: ~\.local\bin]
#   CTX_BASE_URL     the folder of the release: https:// or file://
#   CTX_VERSION      the version in that folder
$ErrorActionPreference = 'Stop'
# The progress bar makes a download several times slower in Windows PowerShell.
$ProgressPreference = 'SilentlyContinue'

function Install-Ctx {
    $version = if ($env:CTX_VERSION) { $env:CTX_VERSION } else { '@VERSION@' }
    $base = if ($env:CTX_BASE_URL) { $env:CTX_BASE_URL } else { '@BASE_URL@' }
    $folder = if ($env:CTX_INSTALL_DIR) { $env:CTX_INSTALL_DIR } else { Join-Path $HOME '.local\bin' }
    if ($base -notmatch '^(https|file)://') {
        throw "'$base' is not the URL of a folder. Set CTX_BASE_URL to the https:// URL of the release."
    }
    if (-not [Environment]::Is64BitOperatingSystem) { throw 'There is no archive for 32-bit Windows.' }

    $name = "ctx-$version-x86_64-pc-windows-gnu"
    $work = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
    New-Item -ItemType Directory $work | Out-Null
    try {
        $archive = Join-Path $work 'archive.tar.gz'
        [Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12
        $client = New-Object Net.WebClient
        $client.DownloadFile("$base/$name.tar.gz", $archive)
        $expected = ($client.DownloadString("$base/$name.tar.gz.sha256") -split '\s+')[0]
        $found = (Get-FileHash $archive -Algorithm SHA256).Hash
        if ($found -ne $expected) {
            throw "The checksum of $name.tar.gz is $found, not $expected. Nothing is installed."
        }
        tar -xzf $archive -C $work
        if ($LASTEXITCODE -ne 0) { throw "Cannot unpack $name.tar.gz. Nothing is installed." }
        New-Item -ItemType Directory -Force $folder | Out-Null
        $binary = Join-Path $folder 'ctx.exe'
        # A binary that is running cannot be replaced, but renamed.
        if (Test-Path $binary) { Move-Item -Force $binary "$binary.old" }
        Move-Item (Join-Path $work "$name\ctx.exe") $binary
        Write-Output "installed $(& $binary --version) as $binary"
        if (($env:PATH -split ';') -contains $folder) {
            Write-Output "$folder is on PATH: run 'ctx help'"
        } else {
            Write-Output "$folder is not on PATH; add it: `$env:PATH = '$folder;' + `$env:PATH"
        }
    } finally {
        Remove-Item -Recurse -Force $work
    }
}
Install-Ctx
