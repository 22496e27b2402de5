// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
)

const (
	// fieldsParameter asks for a projection: only some fields of the objects. The
	// API server would ignore it and answer with whole objects, so such a request
	// is never passed through.
	fieldsParameter = "fields"
	// asParameter is the form of a projection: objects without it.
	asParameter = "as"
	asRows      = "rows"
	asCSV       = "csv"
	asXLSX      = "xlsx"
	// repeatedParameter leaves out what rows repeat of the row before.
	repeatedParameter = "repeated"
	repeatedOmit      = "omit"
	// speedParameter asks for a replay: a WATCH of the past at this multiple of
	// real time, which continues live when it has caught up.
	speedParameter = "speed"
	maxSpeed       = 10_000
	// timesParameter asks for the times of the events of a WATCH, in bookmarks.
	timesParameter = "times"
)

// isProjection reports whether a request for a resource is for a projection.
func isProjection(r *http.Request) bool {
	if r.Method != http.MethodGet || !asks(r, fieldsParameter) && !asks(r, asParameter) && !asks(r, repeatedParameter) {
		return false
	}
	_, ok := ParsePath(r.URL.Path)
	return ok
}

// projectionForms are the values of the parameter as.
var projectionForms = []string{asRows, asCSV, asXLSX}

// Parameters reads the query of a request for an API of the gateway: each parameter once,
// but for those that may be repeated, and no others. The error is a *status.Error.
func Parameters(r *http.Request, names []string, repeatable ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &status.Error{Status: status.BadRequest(fmt.Sprintf("the query cannot be read: %v", err))}
	}
	for name, values := range query {
		switch {
		case slices.Contains(repeatable, name):
		case !slices.Contains(names, name):
			return nil, &status.Error{Status: status.BadRequest(fmt.Sprintf("there is no parameter %q: the parameters are %s", name, strings.Join(names, ", ")))}
		case len(values) > 1:
			return nil, &status.Error{Status: status.BadRequest(fmt.Sprintf("%s is given %d times", name, len(values)))}
		}
	}
	return query, nil
}

// IsExtension reports whether a request for a resource has a parameter of the gateway,
// which the API server does not know.
func IsExtension(r *http.Request) bool {
	if isProjection(r) {
		return true
	}
	if r.Method != http.MethodGet || !AsksSpeed(r) && !AsksTimes(r) {
		return false
	}
	_, ok := ParsePath(r.URL.Path)
	return ok
}

// parseFields reads the parameters fields and as into rd, which is nil if the rest of the
// request was not understood.
func parseFields(r *http.Request, rd *Read) error {
	if !isProjection(r) {
		return nil
	}
	query := r.URL.Query()
	paths, err := ParseProjection(query, projectionForms...)
	changes, repeatedErr := ParseRepeated(query)
	err = cmp.Or(repeatedErr, err)
	file := files[query.Get(asParameter)]
	refusal := jsonOnly(r.Header.Get("Accept"))
	if file != 0 {
		refusal = acceptsFile(r.Header.Get("Accept"), file)
	}
	switch {
	case err != nil:
		refusal = status.BadRequest(err.Error())
	case BringsIdentity(r.Header):
		refusal = status.BadRequest("fields: a request with credentials is passed through to the API server, which has no projections: leave fields or the credentials out")
	case rd == nil:
		refusal = status.BadRequest("fields: the rest of the request cannot be answered from the cache: check its path and parameters")
	case rd.Verb == Get:
		refusal = status.BadRequest("fields: only lists and watches have projections: use fieldSelector=metadata.name=" + rd.Name)
	case file != 0 && rd.Verb == Watch:
		refusal = status.BadRequest(fmt.Sprintf("as: only a list has %s: ask for as=rows", strings.ToUpper(query.Get(asParameter))))
	}
	if refusal != nil {
		return &status.Error{Status: refusal}
	}
	rd.Fields, rd.File, rd.Changes = paths, file, changes && rd.Verb == List
	return nil
}

// ParseProjection reads the parameters fields and as, which may have some of the forms of
// a projection.
func ParseProjection(query url.Values, forms ...string) (*scan.Paths, error) {
	parse, as := scan.ParsePaths, query.Get(asParameter)
	switch {
	case len(query[asParameter]) > 1:
		return nil, fmt.Errorf("as is given %d times", len(query[asParameter]))
	case query.Has(asParameter) && !slices.Contains(forms, as):
		return nil, fmt.Errorf("as is %q: it has to be %s", as, strings.Join(forms, " or "))
	case !query.Has(fieldsParameter):
		return nil, fmt.Errorf("as=%s needs fields, such as fields=spec.nodeName: they are the columns", as)
	case as != "":
		parse = scan.ParseRows
	}
	paths, err := parse(strings.Join(query[fieldsParameter], ","))
	if err != nil {
		return nil, fmt.Errorf("fields: %w: name parts of the object such as spec.nodeName,spec.containers[*].image,metadata.labels['a.b/c']", err)
	}
	if twice := repeatedColumn(query[fieldsParameter]); as != "" && twice != "" {
		return nil, fmt.Errorf("fields: the column %s is there twice", twice)
	}
	return paths, nil
}

// repeatedColumn returns a column that the parameter names twice, however it is written; "" if
// there is none. Each would be a copy of the same text in every row.
func repeatedColumn(fields []string) string {
	texts, steps, _ := scan.ParseSteps(strings.Join(fields, ","))
	seen := map[string]bool{}
	for i := range steps {
		key := fmt.Sprint(steps[i])
		if seen[key] {
			return texts[i]
		}
		seen[key] = true
	}
	return ""
}

// ParseRepeated reads the parameter repeated of rows: whether to leave out what a row
// repeats of the one before.
func ParseRepeated(query url.Values) (omit bool, err error) {
	switch {
	case !query.Has(repeatedParameter):
		return false, nil
	case !slices.Equal(query[repeatedParameter], []string{repeatedOmit}):
		return false, fmt.Errorf("repeated is %q: it has to be %s", strings.Join(query[repeatedParameter], ","), repeatedOmit)
	case query.Get(asParameter) != asRows:
		return false, fmt.Errorf("repeated=%s is for as=%s", repeatedOmit, asRows)
	}
	return true, nil
}

// asks reports whether a request has a parameter.
func asks(r *http.Request, parameter string) bool {
	return mentions(r, parameter) && r.URL.Query().Has(parameter)
}

// jsonOnly returns nil if the Accept header allows plain JSON.
func jsonOnly(accept string) *metav1.Status {
	if accept == "" {
		return nil
	}
	table := false
	for _, clause := range goautoneg.ParseAccept(accept) {
		_, as := clause.Params["as"]
		json := clause.Type == "*" && clause.SubType == "*" || clause.Type == "application" && (clause.SubType == "json" || clause.SubType == "*")
		if json && !as {
			return nil
		}
		table = table || clause.Params["as"] == "Table"
	}
	if table {
		return status.BadRequest("fields: a Table has columns instead: ask for one of the two")
	}
	return status.New(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "fields: projections are JSON only: accept application/json")
}

// files are the values of the parameter as whose answer is a file.
var files = map[string]wire.File{asCSV: wire.CSV, asXLSX: wire.XLSX}

// acceptsFile returns nil if the Accept header allows a file.
func acceptsFile(accept string, file wire.File) *metav1.Status {
	as, media := asCSV, "text/csv"
	if file == wire.XLSX {
		as, media = asXLSX, wire.XLSXType
	}
	typ, sub, _ := strings.Cut(media, "/")
	for _, clause := range goautoneg.ParseAccept(accept) {
		if clause.Type == "*" || clause.Type == typ && (clause.SubType == sub || clause.SubType == "*") {
			return nil
		}
	}
	if accept == "" {
		return nil
	}
	return status.New(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, fmt.Sprintf("as=%s: accept %s", as, media))
}

// parseSpeed reads the parameter speed of a WATCH. It returns 0 without the parameter.
func parseSpeed(r *http.Request) (float64, error) {
	if !AsksSpeed(r) {
		return 0, nil
	}
	text := r.URL.Query().Get(speedParameter)
	speed, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(speed) || speed <= 0 || speed > maxSpeed {
		return 0, &status.Error{Status: status.BadRequest(fmt.Sprintf("speed: %q is not a number above 0 and up to %d", text, maxSpeed))}
	}
	return speed, nil
}

// parseTimes reads the parameter times of a WATCH.
func parseTimes(r *http.Request, bookmarks bool) (bool, error) {
	if !AsksTimes(r) {
		return false, nil
	}
	text := r.URL.Query().Get(timesParameter)
	times, err := strconv.ParseBool(text)
	switch {
	case err != nil:
		return false, &status.Error{Status: status.BadRequest(fmt.Sprintf("times: %q is neither true nor false", text))}
	case times && !bookmarks:
		return false, &status.Error{Status: status.BadRequest("times: they are sent in bookmarks: add allowWatchBookmarks=true")}
	}
	return times, nil
}

// AsksTimes reports whether a request has the parameter times.
func AsksTimes(r *http.Request) bool {
	return asks(r, timesParameter)
}

// AsksSpeed reports whether a request has the parameter speed.
func AsksSpeed(r *http.Request) bool {
	return asks(r, speedParameter)
}
