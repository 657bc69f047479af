package serve

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"

	// The installers register the internal versions that the printers print.
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// generator prints tables exactly as kube-apiserver does: they are its printers.
var generator = printers.NewTableGenerator().With(printersinternal.AddHandlers)

// rowObjects says what a row carries besides its cells (?includeObject=).
type rowObjects = metav1.IncludeObjectPolicy

// table converts an object or a list to a Table. Upstream: endpoints/handlers.asTable.
func table(obj runtime.Object, include rowObjects, headers bool) (*metav1.Table, error) {
	internal, err := legacyscheme.Scheme.ConvertToVersion(obj, runtime.InternalGroupVersioner)
	if err != nil {
		internal = obj
	}
	t, err := generator.GenerateTable(internal, printers.GenerateOptions{Wide: true, NoHeaders: !headers})
	if err != nil {
		if t, err = plainTable(obj, headers); err != nil {
			return nil, err
		}
	}
	if t.Rows == nil {
		t.Rows = []metav1.TableRow{}
	}
	t.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Table"))
	outer := versionOf(obj)
	for i := range t.Rows {
		if err := rowObject(&t.Rows[i], include, outer); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func rowObject(row *metav1.TableRow, include rowObjects, gv schema.GroupVersion) error {
	switch include {
	case metav1.IncludeNone:
		row.Object.Object = nil
	case metav1.IncludeObject:
		obj, err := legacyscheme.Scheme.ConvertToVersion(row.Object.Object, gv)
		if err != nil {
			return err
		}
		row.Object.Object = obj
	default:
		m, err := meta.Accessor(row.Object.Object)
		if err != nil {
			return err
		}
		partial := meta.AsPartialObjectMetadata(m)
		partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
		row.Object.Object = partial
	}
	return nil
}

// plainTable is the table of a kind without columns of its own. Upstream:
// registry/rest.NewDefaultTableConvertor.
func plainTable(obj runtime.Object, headers bool) (*metav1.Table, error) {
	t := &metav1.Table{}
	add := func(o runtime.Object) error {
		m, err := meta.Accessor(o)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, metav1.TableRow{
			Cells:  []any{m.GetName(), m.GetCreationTimestamp().UTC().Format(time.RFC3339)},
			Object: runtime.RawExtension{Object: o},
		})
		return nil
	}
	if meta.IsListType(obj) {
		if err := meta.EachListItem(obj, add); err != nil {
			return nil, err
		}
	} else if err := add(obj); err != nil {
		return nil, err
	}
	if m, err := meta.ListAccessor(obj); err == nil {
		t.ResourceVersion, t.Continue, t.RemainingItemCount = m.GetResourceVersion(), m.GetContinue(), m.GetRemainingItemCount()
	} else if m, err := meta.CommonAccessor(obj); err == nil {
		t.ResourceVersion = m.GetResourceVersion()
	}
	if headers {
		doc := metav1.ObjectMeta{}.SwaggerDoc()
		t.ColumnDefinitions = []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: doc["name"]},
			{Name: "Created At", Type: "date", Description: doc["creationTimestamp"]},
		}
	}
	return t, nil
}
