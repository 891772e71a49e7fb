#compdef stillvec
# zsh completion of stillvec, made by: stillvec completion zsh
_stillvec() {
    local verb=$words[2] prev=$words[CURRENT-1] cur=$words[CURRENT]
    local -a verbs options
    if (( CURRENT == 2 )); then
        verbs=(
%(commands)s
        )
        _describe verb verbs
        return
    fi
    if [[ $cur == -* ]]; then
        case $verb in
%(options)s
        esac
        _describe -o option options
        return
    fi
    case "$verb $prev" in
%(values)s
    esac
    case $verb in
%(alone)s
    esac
    _files
}
if [[ $funcstack[1] == _stillvec ]]; then _stillvec "$@"; else compdef _stillvec stillvec; fi
