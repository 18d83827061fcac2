"""Scripts of bash and git that make worktrees, commit their files, and merge.

Each script begins with `_GIT`. A script prints its results as lines; the first word of a line names the kind of result.
"""

_GIT = r"""
set -eu
rm -f "$COMMON/commondir"
git() {
    command git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c commit.gpgSign=false -c gc.auto=0 \
        -c maintenance.auto=false -c core.fsync=all -c submodule.recurse=false -c core.quotePath=false "$@"
}
if [ -z "$(git config user.email || true)" ]; then
    export GIT_AUTHOR_NAME=ikigai GIT_AUTHOR_EMAIL=ikigai@localhost
    export GIT_COMMITTER_NAME=ikigai GIT_COMMITTER_EMAIL=ikigai@localhost
fi
"""
"""The beginning of each script: no hook and no program that the repository names. A file ``commondir``, which no main
directory has, would name another repository."""

_NESTED = r"""
untracked() { git ls-files -o --exclude-standard -z | grep -z '/$' || true; }
tracked() { git ls-files -s -z | sed -z -n 's/^160000 [^\t]*\t//p'; }
saved() (
    unset GIT_INDEX_FILE
    cd "$1" || exit 1
    [ -z "$(git status --porcelain)" ] || exit 1
    commits=$(git rev-list -n 1 HEAD --all --not --remotes 2> /dev/null) || exit 1
    [ -z "$commits" ]
)
nested() {
    while IFS= read -r -d '' name; do
        name=${name%/}
        [ -e "$name/.git" ] || continue
        if saved "$name"; then printf 'nested %s saved %s\n' "$1" "${name//$'\n'/?}"
        else printf 'nested %s unsaved %s\n' "$1" "${name//$'\n'/?}"; fi
    done
}
"""
"""Functions that find inner repositories. A repository is saved if a remote has all of its commits."""

SNAPSHOT = (
    _GIT
    + _NESTED
    + r"""
if [ "$2" = once ] && git rev-parse -q --verify "$1^{commit}"; then exit 0; fi
GIT_INDEX_FILE=$(mktemp); export GIT_INDEX_FILE
trap 'rm -f "$GIT_INDEX_FILE" "$GIT_INDEX_FILE.lock"' EXIT
index=$(unset GIT_INDEX_FILE; git rev-parse --git-path index)
if [ -e "$index" ]; then cp "$index" "$GIT_INDEX_FILE"; else rm "$GIT_INDEX_FILE"; fi
untracked | nested untracked
tracked | nested tracked
{ printf '.\0'; untracked | sed -z 's/^/:(exclude,literal)/'; } |
    git add -A --pathspec-from-file=- --pathspec-file-nul
tree=$(git write-tree)
head=$(git rev-parse -q --verify 'HEAD^{commit}' || true)
if [ -n "$head" ] && [ "$tree" = "$(git rev-parse "$head^{tree}")" ]; then commit=$head
else commit=$(git commit-tree "$tree" ${head:+-p "$head"} -m "Keep what was not committed"); fi
git update-ref "$1" "$commit"
echo "$commit"
"""
)
"""Commits all files, outside of all branches. Prints ``nested untracked|tracked saved|unsaved NAME`` for each inner
repository, whose files are not included, and the commit. Arguments: the reference for the commit; ``once`` to keep the
commit that the reference has already.
"""

_LATEST = r"""
latest() {
    local found kept
    found=$(git rev-parse -q --verify "refs/heads/$1^{commit}" || true)
    for kept in $(git for-each-ref --sort=committerdate --format='%(objectname)' "refs/ikigai/$2/"); do
        if [ -z "$found" ] || git merge-base --is-ancestor "$found" "$kept"; then found=$kept; fi
    done
    echo "$found"
}
"""
"""A function that prints the latest commit of an agent: of its branch, or of a later snapshot."""

FOUND = (
    _GIT
    + _LATEST
    + r"""
latest "$1" "$2"
"""
)
"""Prints the commit that git has of an agent, if any. Arguments: branch, agent."""

MAKE = (
    _GIT
    + _LATEST
    + r"""
from=$(latest "$1" "$4")
if [ "$5" = made ] && [ -d "$2" ]; then
    git worktree repair > /dev/null 2>&1 || true
    if ! git -C "$2" rev-parse -q --verify HEAD > /dev/null 2>&1; then
        git worktree remove -f -f "$2.new" 2> /dev/null || rm -rf "$2.new"
        git worktree add -q -f -f --no-checkout -B "$1" "$2.new" "${from:-$3}"
        rm -f "$2/.git"
        mv "$2.new/.git" "$2/.git"
        rmdir "$2.new"
        git worktree repair "$2" > /dev/null 2>&1
        git -C "$2" reset -q
    fi
    echo known
else
    if [ "$5" = made ] || [ "$5" = missing -a -n "$from" ]; then echo again; fi
    git worktree unlock "$2" 2> /dev/null || true
    git worktree remove -f "$2" 2> /dev/null || true
    rm -rf "$2"
    git worktree add -q -f -f -B "$1" "$2" "${from:-$3}"
fi
git worktree lock --reason "an agent works there" "$2" 2> /dev/null || true
"""
)
"""Makes a worktree. Prints ``again`` if somebody had removed it, and ``known`` if only its registration was missing and
its files are unchanged. Arguments: branch, path, first commit, agent, and the earlier state: ``made``, ``cut`` if
making it was cut off, or ``missing``.
"""

MERGE = (
    _GIT
    + r"""
head=$(git rev-parse -q --verify 'HEAD^{commit}') || { echo "refused nothing is committed there yet"; exit 0; }
theirs=$1 message=$2 kept=$3 fork=$4
shift 4
if [ "$theirs" = "$fork" ] || git merge-base --is-ancestor "$theirs" "$head"; then exit 0; fi

space=$(mktemp -d)
trap 'rm -rf "$space"' EXIT
index=$(git rev-parse --git-path index)
exists() { [ -e "$1" ] || [ -L "$1" ]; }

# What was not committed at the fork, is here as it was then, and was changed by them: it counts as ours.
base=$(git merge-base "$head" "$theirs" || true) parents=(-p "$head")
if [ -n "$fork" ] && git merge-base --is-ancestor "$fork" "$theirs" &&
    ! git merge-base --is-ancestor "$fork" "$head"; then base=$fork parents+=(-p "$fork"); fi
: > "$space/entries"
if [ -n "$base" ]; then
    git diff-tree -r -z --no-renames --name-only "$base" "$theirs" | sort -z > "$space/changed"
    git diff-tree -r -z --no-renames --name-only "$head" "$base" | sort -z | comm -z -12 - "$space/changed" |
        while IFS= read -r -d '' name; do
            if entry=$(git ls-tree "$base" -- "$name") && [ -n "$entry" ]; then
                read -r mode _ object _ <<< "$entry"
                printf '%s %s\t%s\0' "$mode" "$object" "$name"
            elif ! exists "$name"; then printf '0 %s\t%s\0' "$base" "$name"; fi
        done > "$space/then"
    export GIT_INDEX_FILE=$space/index-then
    git update-index -z --index-info < "$space/then"
    git update-index -q --refresh > /dev/null || true
    git diff-files -z --name-only > "$space/differ"
    unset GIT_INDEX_FILE
    while IFS= read -r -d '' entry; do
        grep -z -q -x -F -e "${entry#*$'\t'}" "$space/differ" || printf '%s\0' "$entry"
    done < "$space/then" > "$space/entries"
fi
if [ -e "$index" ]; then cp "$index" "$space/index"; fi
if [ -n "$(git ls-files -u)" ]; then
    git diff --name-only --diff-filter=U | sed 's/^/dirty /'
    exit 0
fi
GIT_INDEX_FILE=$space/index-ours git read-tree "$head"
for one in "$space/index-ours" "$space/index"; do
    GIT_INDEX_FILE=$one git update-index -z --index-info < "$space/entries"
done
tree=$(GIT_INDEX_FILE=$space/index-ours git write-tree)
ours=$(git commit-tree "$tree" "${parents[@]}" -m "$message")

if ! merged=$(git merge-tree --write-tree --name-only --no-messages "$ours" "$theirs"); then
    case $merged in
        [0-9a-f]*) printf '%s\n' "$merged" | tail -n +2 | sed 's/^/conflict /' ;;
        *) echo "refused these histories have nothing in common" ;;
    esac
    exit 0
fi
commit=$(git commit-tree "$merged" -p "$head" -p "$theirs" -m "$message")
for name; do
    if exists "$name" && ! git diff-tree -r --quiet "$head" "$commit" -- ":(literal)$name"; then
        echo "protected $name"
        exit 0
    fi
done
if [ -e "$index.lock" ]; then echo "refused another git works there: $index.lock"; exit 0; fi
export GIT_INDEX_FILE=$space/index
git update-index -q --refresh > /dev/null || true
{ git diff-files -z --name-only; git diff-index -z --cached --name-only "$ours"; } | sort -z -u > "$space/differ"
in_the_way() {
    local place=$1
    while ! exists "$place"; do
        case $place in */*) place=${place%/*} ;; *) return 1 ;; esac
    done
    if [ -d "$place" ] && [ ! -L "$place" ]; then [ "$place" = "$1" ] && [ -n "$(git ls-files -o -- ":(literal)$1")" ]
    else [ -z "$(git ls-files -- ":(literal)$place")" ] && way=$place; fi
}
{
    git diff-tree -r -z --no-renames --name-only "$ours" "$commit" | sort -z | comm -z -12 - "$space/differ"
    git diff-tree -r -z --no-renames --name-only --diff-filter=A "$ours" "$commit" |
        while IFS= read -r -d '' name; do
            way=$name
            if in_the_way "$name"; then printf '%s\0' "$way"; fi
        done
} | sort -z -u | tr '\n\0' '?\n' | sed 's/^/dirty /' > "$space/dirty"
if [ -s "$space/dirty" ]; then cat "$space/dirty"; exit 0; fi
if ! words=$(git read-tree -m -u -n "$ours" "$commit" 2>&1); then echo "refused $words"; exit 0; fi
git update-ref "$kept-from" "$ours"
git update-ref "$kept" "$commit"
git read-tree -m -u "$ours" "$commit"
unset GIT_INDEX_FILE
cp "$space/index" "$index.lock"
mv "$index.lock" "$index"
git update-ref -m "merge of an agent's work" HEAD "$commit" "$head"
git update-ref -d "$kept"
git update-ref -d "$kept-from"
git diff-tree -r --no-renames --name-only "$ours" "$commit" | sed 's/^/changed /'
"""
)
"""Merges a commit. First decides without touching a file, then writes the files. Prints ``changed PATH``; or, if
nothing was merged, ``conflict PATH`` for files that both sides have committed, ``dirty PATH`` for uncommitted changes
here, ``protected PATH``, or ``refused WORDS``. Arguments: the commit, a message, a reference that keeps the merge
meanwhile, the commit of these files at the fork if known, and the names that no agent may change.
"""

FINISH = (
    _GIT
    + r"""
commit=$(git rev-parse -q --verify "$1^{commit}") || exit 0
head=$(git rev-parse HEAD)
if [ "$head" = "$(git rev-parse "$commit^1")" ]; then
    from=$(git rev-parse -q --verify "$1-from^{commit}" || echo "$head")
    rm -f "$(git rev-parse --git-path index.lock)"
    gone() { git diff-tree -r -z --no-renames --name-only --diff-filter=D "$from" "$commit"; }
    gone | xargs -0 -r git -c core.hooksPath=/dev/null rm -q -f --ignore-unmatch --
    gone | xargs -0 -r rm -f --
    git diff-tree -r -z --no-renames --name-only --diff-filter=d "$from" "$commit" |
        xargs -0 -r git -c core.hooksPath=/dev/null checkout -q -f "$commit" --
    git update-ref -m "merge of an agent's work" HEAD "$commit" "$head"
fi
git update-ref -d "$1"
git update-ref -d "$1-from"
"""
)
"""Writes the files of a merge that was cut off. Argument: the reference that kept the merge."""

KEEP = (
    _GIT
    + r"""
branch=$1 commit=$2
if [ -n "$(git for-each-ref --count=1 --contains "$commit" refs/heads)" ]; then exit 0; fi
while tip=$(git rev-parse -q --verify "refs/heads/$branch^{commit}") &&
    ! git merge-base --is-ancestor "$tip" "$commit"; do branch=$branch-kept; done
git update-ref -m "Keep what was not committed" "refs/heads/$branch" "$commit"
echo "$branch"
"""
)
"""Puts a commit on a branch, if no branch has it yet, and prints the branch. Arguments: the branch of the agent, the
commit.
"""
